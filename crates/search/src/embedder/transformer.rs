//! Sentence transformer inference with `rten`, in pure Rust.
//!
//! Each text runs alone, several in parallel. 8-bit models quantize activations over the whole
//! batch, so in a batch a text's vector would depend on its neighbours. Alone it is deterministic
//! and needs no padding.

use std::sync::{Arc, OnceLock};
use std::thread;

use rten::{
    Model, ModelOptions, NodeId, OpRegistry, RunOptions, ShapeInferenceMode, ThreadPool, Value,
};
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;

use super::Error;
use super::wordpiece::WordPiece;
use memctl_files::parallel::{each, processors};

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
