//! Meaning as numbers: a sentence transformer inside the program.
//!
//! The model is all-MiniLM-L6-v2 with 8-bit weights (`assets/embedder/`), run by `rten` in pure Rust.
//! Nothing is downloaded, read from disk or sent anywhere. Texts of like meaning get vectors whose
//! dot product is near 1.
//!
//! Each text is run by itself, several of them side by side: activations are quantised over all
//! that runs together, so in a batch the vector of a text would depend on its neighbours. Alone it is
//! the same every time.

use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use rten::{Model, ModelOptions, NodeId, OpRegistry, RunOptions, ShapeInferenceMode, ThreadPool};
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;

use super::wordpiece::WordPiece;

static MODEL: &[u8] = include_bytes!("../../assets/embedder/model.onnx");
static WEIGHTS: &[u8] = include_bytes!("../../assets/embedder/model.data");
static VOCABULARY: &str = include_str!("../../assets/embedder/vocab.txt");

/// How many numbers a vector has.
pub const DIMENSIONS: usize = 384;

/// Names the model and the shape of its vectors. Vectors that carry another name are of no use.
pub const EMBEDDER: &str = "all-minilm-l6-v2-int8/384";

/// The part of a text that counts, in tokens: what the model was trained for.
const MAX_TOKENS: usize = 256;

/// A vector of length 1.
pub type Vector = [f32; DIMENSIONS];

/// Why there is no vector.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The model inside the program cannot be read.
    #[error("the built-in model cannot be loaded")]
    Load(#[from] rten::LoadError),
    /// The model stopped.
    #[error("the built-in model cannot be run")]
    Run(#[from] rten::RunError),
    /// The model answered something that is no vector.
    #[error("the built-in model gave no vector")]
    NoVector,
}

/// The transformer that is built into the program.
///
/// Loading takes about 7 ms and is for whoever searches by meaning; nothing else should.
pub struct BuiltIn {
    model: Model,
    tokenizer: WordPiece,
    inputs: [NodeId; 2],
    output: NodeId,
}

impl std::fmt::Debug for BuiltIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(EMBEDDER)
    }
}

impl BuiltIn {
    /// Loads the model. The weights are used where they are, in the program's image.
    ///
    /// # Errors
    ///
    /// None that a user could cause: the model is part of the program.
    pub fn load() -> Result<Self, EmbedError> {
        let (model, tokenizer) = thread::scope(|scope| {
            let tokenizer = scope.spawn(|| WordPiece::new(VOCABULARY));
            let mut options = ModelOptions::with_ops(operators());
            options
                .external_data_static("model.data", WEIGHTS)
                // The shapes are known to fit; finding that out again takes time.
                .shape_inference(ShapeInferenceMode::Off)
                // Costs 4 ms once, and spares 2.5 ms a text.
                .prepack_weights(true);
            (options.load_static_slice(MODEL), tokenizer.join())
        });
        let model = model?;
        Ok(Self {
            inputs: [
                model.node_id("input_ids")?,
                model.node_id("attention_mask")?,
            ],
            output: model.node_id("embedding")?,
            model,
            tokenizer: tokenizer.map_err(|_| EmbedError::NoVector)?,
        })
    }

    /// The vectors of the texts, in their order. What stands beyond 256 tokens of a text (about a
    /// page) does not count; a text without words has a vector too, of no particular meaning.
    ///
    /// # Errors
    ///
    /// None that a text could cause.
    pub fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>, EmbedError> {
        let workers = thread::available_parallelism().map_or(1, NonZero::get);
        let share = texts.len().div_ceil(workers).max(1);
        if texts.len() <= share {
            return self.embed_in_turn(texts);
        }
        thread::scope(|scope| {
            let work = |part| scope.spawn(move || self.embed_in_turn(part));
            let parts: Vec<_> = texts.chunks(share).map(work).collect();
            let mut vectors = Vec::with_capacity(texts.len());
            for part in parts {
                vectors.extend(part.join().map_err(|_| EmbedError::NoVector)??);
            }
            Ok(vectors)
        })
    }

    fn embed_in_turn(&self, texts: &[&str]) -> Result<Vec<Vector>, EmbedError> {
        let mut options = RunOptions::default();
        options.thread_pool = Some(Arc::new(ThreadPool::with_num_threads(1)));
        let vector = |text: &&str| self.embed_one(text, &options);
        texts.iter().map(vector).collect()
    }

    fn embed_one(&self, text: &str, options: &RunOptions) -> Result<Vector, EmbedError> {
        let tokens = self.tokenizer.encode(text, MAX_TOKENS);
        let shape = [1, tokens.len()];
        let mask = NdTensor::full(shape, 1i32);
        let tokens = NdTensor::from_data(shape, tokens);
        let [ids, attention] = self.inputs;
        let inputs = vec![(ids, tokens.into()), (attention, mask.into())];
        let [output] = self
            .model
            .run_n(inputs, [self.output], Some(options.clone()))?;
        let output: NdTensor<f32, 2> = output.try_into().map_err(|_| EmbedError::NoVector)?;
        let sum: Vector = output
            .to_vec()
            .try_into()
            .map_err(|_| EmbedError::NoVector)?;
        let length = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
        Ok(sum.map(|x| x / length.max(f32::MIN_POSITIVE)))
    }
}

/// How alike two texts are by their vectors, from -1 to 1.
pub fn cosine(a: &Vector, b: &Vector) -> f32 {
    // Eight sums side by side, so that the compiler may use the processor's vectors.
    let mut sums = [0.0; 8];
    for (a, b) in a.chunks_exact(8).zip(b.chunks_exact(8)) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sums.iter().sum()
}

/// What the model is made of; leaving the others out keeps the program small.
fn operators() -> OpRegistry {
    rten::op_registry!(
        Add, Cast, Div, DynamicQuantizeLinear, Erf, Gather, LayerNormalization, MatMul,
        MatMulInteger, Mul, ReduceSum, Reshape, Shape, Slice, Softmax, Sub, Transpose, Unsqueeze
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Equal to the last bit, not nearly.
    fn bits(vector: &Vector) -> Vec<u32> {
        vector.iter().map(|x| x.to_bits()).collect()
    }

    #[test]
    fn like_meanings_are_near_without_a_common_word() {
        let model = BuiltIn::load().unwrap();
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
        let model = BuiltIn::load().unwrap();
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
        let model = BuiltIn::load().unwrap();
        let head = "word ".repeat(300);
        let vectors = model
            .embed(&[&head, &format!("{head} and a different end")])
            .unwrap();
        assert_eq!(bits(&vectors[0]), bits(&vectors[1]));
    }
}
