//! Built-in sentence transformer, and its inference with `rten`, in pure Rust.
//!
//! The model is all-MiniLM-L6-v2 with 8-bit weights (`assets/`). It is part of the
//! program: no download, no disk access, no network. Vectors of texts with similar meaning have a
//! dot product near 1.
//!
//! Each text runs alone, several in parallel. 8-bit models quantize activations over the whole
//! batch, so in a batch a text's vector would depend on its neighbours. Alone it is deterministic
//! and needs no padding.

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
static WEIGHTS: &[u8] = &joined(memctl_weights_1::WEIGHTS, memctl_weights_2::WEIGHTS);
static VOCABULARY: &str = include_str!("../../assets/vocab.txt");

/// Bytes of the weights.
const SIZE: usize = memctl_weights_1::WEIGHTS.len() + memctl_weights_2::WEIGHTS.len();

/// Joins the parts of the weights when the program is compiled. Each is in a crate of its own, because the
/// registry takes 10 MiB of one.
#[expect(clippy::large_stack_arrays, reason = "only the compiler runs it")]
const fn joined(first: &[u8], second: &[u8]) -> [u8; SIZE] {
    let mut all = [0; SIZE];
    let (start, end) = all.split_at_mut(first.len());
    start.copy_from_slice(first);
    end.copy_from_slice(second);
    all
}

/// Dimensions of the built-in model's vectors.
pub const DIMENSIONS: usize = 384;

/// Identifies the model and its vector shape. Vectors of another embedder cannot be compared.
pub const EMBEDDER: &str = "all-minilm-l6-v2-int8/384";

/// Maximum number of tokens that are embedded, as in the model's training.
const MAX_TOKENS: usize = 256;

/// Loads the built-in transformer. The weights are used in place, in the program's image.
///
/// Loading takes about 3 ms, or 7 ms with `many_texts`; load it only for semantic search. The
/// vectors are the same either way.
///
/// # Errors
///
/// Fails only if the built-in model is broken, never because of user input.
pub fn built_in(many_texts: bool) -> Result<Transformer, Error> {
    let parts = Parts {
        model: MODEL,
        weights: ("model.data", WEIGHTS),
        max_tokens: MAX_TOKENS,
        many_texts,
    };
    Transformer::load(&parts, || {
        WordPiece::of_lines(VOCABULARY).ok_or(Error::NoVector)
    })
}

/// Vector of length 1.
pub type Vector = Vec<f32>;

/// Inputs of a transformer.
pub(crate) struct Parts {
    /// The network, as ONNX. It is known to be valid.
    pub model: &'static [u8],
    /// External weights, and their name in the network.
    pub weights: (&'static str, &'static [u8]),
    /// Maximum number of tokens per text.
    pub max_tokens: usize,
    /// Prepacks the weights, which pays off for many texts.
    pub many_texts: bool,
}

/// Operators of the built-in model. Leaving out the others keeps the program small.
fn operators() -> OpRegistry {
    rten::op_registry!(
        Add, Cast, Div, DynamicQuantizeLinear, Erf, Gather, LayerNormalization, MatMul,
        MatMulInteger, Mul, ReduceSum, Reshape, Shape, Slice, Softmax, Sub, Transpose, Unsqueeze
    )
}

/// Loaded sentence transformer.
pub struct Transformer {
    model: Model,
    tokenizer: WordPiece,
    ids: NodeId,
    mask: NodeId,
    output: NodeId,
    max_tokens: usize,
    /// Threads for a single text: one per processor, shared by all users of the model.
    together: OnceLock<RunOptions>,
}

impl std::fmt::Debug for Transformer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "transformer of {} tokens", self.max_tokens)
    }
}

impl Transformer {
    /// Loads a model and, in parallel, its tokenizer.
    pub(crate) fn load(
        parts: &Parts,
        tokenizer: impl FnOnce() -> Result<WordPiece, Error> + Send,
    ) -> Result<Self, Error> {
        let (model, tokenizer) = thread::scope(|scope| {
            let tokenizer = scope.spawn(tokenizer);
            let mut options = ModelOptions::with_ops(operators());
            let (name, bytes) = parts.weights;
            options.external_data_static(name, bytes);
            // Costs 4 ms and 20 MB once for the built-in model, and saves 2.5 ms per text.
            options.prepack_weights(parts.many_texts);
            options.shape_inference(ShapeInferenceMode::Off);
            (options.load_static_slice(parts.model), tokenizer.join())
        });
        let (model, tokenizer) = (model?, tokenizer.map_err(|_| Error::NoVector)??);
        Ok(Self {
            ids: model.node_id("input_ids")?,
            mask: model.node_id("attention_mask")?,
            output: *model.output_ids().first().ok_or(Error::NoVector)?,
            model,
            tokenizer,
            max_tokens: parts.max_tokens,
            together: OnceLock::new(),
        })
    }

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
        let tokens = self.tokenizer.encode(text, self.max_tokens);
        let shape = [1, tokens.len()];
        let all = NdTensor::full(shape, 1_i32);
        let tokens = NdTensor::from_data(shape, tokens);
        let inputs = vec![(self.ids, tokens.into()), (self.mask, all.into())];
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
}
