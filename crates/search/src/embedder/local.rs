//! Built-in sentence transformer, and its inference with `rten`, in pure Rust.
//!
//! The model is all-MiniLM-L6-v2 with 8-bit weights (`assets/`) and a table of words in 4 bits.
//! It is part of the program: no download, no disk access, no network. Vectors of texts with similar meaning
//! have a dot product near 1.
//!
//! Each text runs alone, several in parallel. 8-bit models quantize activations over the whole
//! batch, so in a batch a text's vector would depend on its neighbours. Alone it is deterministic
//! and needs no padding and no mask.

use std::sync::{Arc, OnceLock};
use std::thread;

use memctl_files::parallel::{each, processors};
use rten::{
    Model, ModelOptions, NodeId, OpRegistry, RunOptions, ShapeInferenceMode, ThreadPool, Value,
};
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;

use super::Error;
use super::wordpiece::WordPiece;

static MODEL: &[u8] = include_bytes!("../../assets/model.onnx");
static VOCABULARY: &str = include_str!("../../assets/vocab.txt");

/// Dimensions of the built-in model's vectors.
pub const DIMENSIONS: usize = 384;

/// Identifies the model (8 bits in its layers, 4 in its words) and its vector shape. Vectors of another embedder
/// cannot be compared.
pub const EMBEDDER: &str = "all-minilm-l6-v2-int8-int4/384";

/// Maximum number of tokens that are embedded, as in the model's training.
const MAX_TOKENS: usize = 256;

/// Vector of length 1.
pub type Vector = Vec<f32>;

/// Operators of the built-in model. Leaving out the others keeps the program small.
fn operators() -> OpRegistry {
    rten::op_registry!(
        Add, Cast, Div, DynamicQuantizeLinear, Erf, LayerNormalization, MatMul, MatMulInteger, Mul,
        ReduceMean, Reshape, Shape, Slice, Softmax, Transpose
    )
}

/// Loaded sentence transformer.
pub struct Transformer {
    model: Model,
    tokenizer: WordPiece,
    words: NodeId,
    output: NodeId,
    /// Threads for a single text: one per processor, shared by all users of the model.
    together: OnceLock<RunOptions>,
}

impl std::fmt::Debug for Transformer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transformer").finish_non_exhaustive()
    }
}

/// Loads the built-in transformer. The weights are used in place, in the program's image.
///
/// Loading takes about 3 ms, or 7 ms with `many_texts`; load it only for semantic search. The
/// vectors are the same either way.
///
/// # Errors
///
/// Fails only if the built-in model is broken, never because of user input.
pub fn built_in(many_texts: bool) -> Result<Transformer, Error> {
    let (model, tokenizer) = thread::scope(|scope| {
        let tokenizer = scope.spawn(|| WordPiece::of_lines(VOCABULARY));
        let mut options = ModelOptions::with_ops(operators());
        options.external_data_static("model.data", memctl_weights::WEIGHTS);
        // Costs 4 ms and 20 MB once, and saves 2.5 ms per text.
        options.prepack_weights(many_texts);
        options.shape_inference(ShapeInferenceMode::Off);
        (options.load_static_slice(MODEL), tokenizer.join())
    });
    let model = model?;
    Ok(Transformer {
        words: model.node_id("words")?,
        output: *model.output_ids().first().ok_or(Error::NoVector)?,
        model,
        tokenizer: tokenizer.ok().flatten().ok_or(Error::NoVector)?,
        together: OnceLock::new(),
    })
}

impl Transformer {
    /// Embeds texts, in order. Tokens beyond the model's limit are ignored (256, about a page). A text
    /// without words gets a vector without particular meaning.
    ///
    /// # Errors
    ///
    /// Fails only if the model fails, regardless of the texts.
    pub fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>, Error> {
        thread_local!(static ALONE: RunOptions = on_threads(1));
        if let [text] = texts {
            // Most of the work is laying out the weights, which threads can share.
            let together = self.together.get_or_init(|| on_threads(processors()));
            return Ok(vec![self.embed_one(text, together)?]);
        }
        let embed = |text: &&str| ALONE.with(|options| self.embed_one(text, options));
        each(texts, true, embed).into_iter().collect()
    }

    fn embed_one(&self, text: &str, options: &RunOptions) -> Result<Vector, Error> {
        let pieces = self.tokenizer.encode(text, MAX_TOKENS);
        let words = embeddings(&pieces).ok_or(Error::NoVector)?;
        let words = NdTensor::from_data([1, pieces.len(), DIMENSIONS], words);
        let inputs = vec![(self.words, words.into())];
        let [output] = self
            .model
            .run_n(inputs, [self.output], Some(options.clone()))?;
        let vector = vector(output).ok_or(Error::NoVector)?;
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        Ok(vector
            .iter()
            .map(|x| x / length.max(f32::MIN_POSITIVE))
            .collect())
    }
}

fn on_threads(threads: usize) -> RunOptions {
    let mut options = RunOptions::default();
    options.thread_pool = Some(Arc::new(ThreadPool::with_num_threads(threads)));
    options
}

/// Vector of any length from the model's output, which is pooled; `None` if the shape is unexpected.
fn vector(output: Value) -> Option<Vector> {
    let output = output.into_tensor::<f32>()?;
    matches!(output.shape()[..], [1, width] if width > 0).then(|| output.to_vec())
}

/// Embeddings of the word pieces, packed: the model's first layer, which only looks them up. `convert.py` writes the
/// table. A row has the four bits of each number: 12 scales in 16 bits (the upper half of a 32-bit float), then 192
/// bytes with two numbers each, the lower half first. A number is a step from -8 to 7, stored from 0 to 15; 32 of
/// them share a scale.
static TABLE: &[u8] = include_bytes!("../../assets/words.data");

/// Bytes of the scales of a row.
const SCALES: usize = 2 * 12;

/// Bytes of the steps of a row, and of those that share a scale.
const STEPS: usize = DIMENSIONS / 2;
const GROUP: usize = 32 / 2;

/// Embeddings of the pieces, one behind the other; `None` if the table lacks one.
fn embeddings(pieces: &[u16]) -> Option<Vec<f32>> {
    let (rows, _) = TABLE.as_chunks::<{ SCALES + STEPS }>();
    let mut numbers = Vec::with_capacity(pieces.len() * DIMENSIONS);
    for piece in pieces {
        unpack(rows.get(usize::from(*piece))?, &mut numbers);
    }
    Some(numbers)
}

fn unpack(row: &[u8; SCALES + STEPS], numbers: &mut Vec<f32>) {
    let (scales, steps) = row.split_at(SCALES);
    let (scales, (groups, _)) = (scales.as_chunks().0, steps.as_chunks::<GROUP>());
    for (scale, group) in scales.iter().zip(groups) {
        let scale = f32::from_bits(u32::from(u16::from_le_bytes(*scale)) << 16);
        let steps = group.iter().flat_map(|two| [two & 15, two >> 4]);
        numbers.extend(steps.map(|step| (f32::from(step) - 8.0) * scale));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cosine similarity, from -1 to 1.
    fn cosine(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    /// Bit patterns, for exact comparison.
    fn bits(vector: &[f32]) -> Vec<u32> {
        vector.iter().map(|x| x.to_bits()).collect()
    }

    #[test]
    fn like_meanings_are_near_without_a_common_word() {
        let model = built_in(true).unwrap();
        let check = |near: [&str; 2], others: &[&str]| {
            let mut texts = near.to_vec();
            texts.extend(others);
            let vectors = model.embed(&texts).unwrap();
            let like = cosine(&vectors[0], &vectors[1]);
            for (other, text) in vectors[2..].iter().zip(others) {
                let unlike = cosine(&vectors[0], other);
                assert!(like > unlike + 0.1, "{near:?} {like}, {text:?} {unlike}");
            }
        };
        let others = [
            "the cat sleeps on the sofa",
            "compile the project with optimisations",
            "bake the bread for forty minutes",
            "the train to the coast leaves at nine",
            "a list of files by their size",
            "restart the database server",
            "paint the wall in two layers",
            "the candidate speaks three languages",
            "rename a variable in every module",
            "rain is expected in the evening",
        ];
        check(
            ["check compliance", "verify regulatory requirements"],
            &others,
        );
        check(
            [
                "remove old log files",
                "find . -name '*.log' -mtime +30 -delete",
            ],
            &others[5..],
        );
    }

    #[test]
    fn a_text_has_one_vector_whatever_stands_beside_it() {
        let model = built_in(true).unwrap();
        let texts = [
            "",
            "one",
            "two words",
            "🙂",
            "日本語",
            "\0",
            &"long ".repeat(9000),
        ];
        let together = model.embed(&texts).unwrap();
        assert_eq!(together.len(), texts.len());
        for (text, vector) in texts.iter().zip(&together) {
            let alone = model.embed(&[text]).unwrap();
            assert_eq!(bits(&alone[0]), bits(vector), "{text:?}");
            assert!((cosine(vector, vector) - 1.0).abs() < 1e-4, "{text:?}");
        }
        assert_eq!(model.embed(&[]).unwrap(), Vec::<Vector>::new());
    }

    #[test]
    fn texts_beyond_the_limit_are_known_by_their_head() {
        let model = built_in(true).unwrap();
        let head = "word ".repeat(300);
        let vectors = model
            .embed(&[&head, &format!("{head} and a different end")])
            .unwrap();
        assert_eq!(bits(&vectors[0]), bits(&vectors[1]));
    }

    #[test]
    fn a_row_is_its_steps_times_the_scales_of_their_groups() {
        let mut row = [0x88; SCALES + STEPS];
        // 1.0 for the first group, -0.5 for the last one.
        row[..2].copy_from_slice(&0x3f80_u16.to_le_bytes());
        row[SCALES - 2..SCALES].copy_from_slice(&0xbf00_u16.to_le_bytes());
        row[SCALES] = 0xf0;
        row[SCALES + STEPS - 1] = 0x9a;
        let mut numbers = Vec::new();
        unpack(&row, &mut numbers);
        assert_eq!(numbers.len(), DIMENSIONS);
        assert_eq!(numbers[..3], [-8.0, 7.0, 0.0]);
        assert_eq!(numbers[DIMENSIONS - 3..], [0.0, -1.0, -0.5]);
    }

    #[test]
    fn every_piece_of_the_vocabulary_has_a_row() {
        let pieces = include_str!("../../assets/vocab.txt").lines().count();
        let last = u16::try_from(pieces - 1).unwrap();
        assert_eq!(embeddings(&[0, last]).unwrap().len(), 2 * DIMENSIONS);
        assert_eq!(TABLE.len(), pieces * (SCALES + STEPS));
        assert!(embeddings(&[last + 1]).is_none());
    }
}
