//! Sentence transformer inference with `rten`, in pure Rust.
//!
//! Each text runs alone, several in parallel. 8-bit models quantize activations over the whole
//! batch, so in a batch a text's vector would depend on its neighbours. Alone it is deterministic
//! and needs no padding.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::thread;

use rten::{Model, ModelOptions, NodeId, RunOptions, ShapeInferenceMode, ThreadPool, Value};
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;

use super::operators::operators;
use super::wordpiece::WordPiece;
use crate::platform::parallel::{each, processors};

/// Vector of length 1.
pub type Vector = Vec<f32>;

/// Failure to create a vector.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The file is not a model, or it needs an unsupported operator.
    #[error("the sentence transformer cannot be loaded")]
    Load(#[from] rten::LoadError),
    /// Inference failed.
    #[error("the sentence transformer cannot be run")]
    Run(#[from] rten::RunError),
    /// The output does not have the shape of a vector.
    #[error("the sentence transformer returned no vector")]
    NoVector,
    /// A file beside the model does not fit it.
    #[error("the sentence transformer cannot be used: {0}")]
    Unusable(String),
}

/// Method of combining token vectors into a text vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pooling {
    /// Mean of all tokens.
    Mean,
    /// Maximum of each dimension.
    Max,
    /// Vector of the start token.
    First,
    /// Vector of the end token.
    Last,
    /// Mean with larger weights for later tokens.
    WeightedMean,
}

/// Inputs of a transformer.
pub(crate) struct Parts {
    /// The network, as ONNX.
    pub(crate) model: Cow<'static, [u8]>,
    /// External weights, by the names in the network.
    pub(crate) weights: Vec<(String, Cow<'static, [u8]>)>,
    pub(crate) pooling: Pooling,
    /// Maximum number of tokens per text.
    pub(crate) max_tokens: usize,
    /// Skips shape inference for a network that is known to be valid.
    pub(crate) is_checked: bool,
    /// Prepacks the weights, which pays off for many texts.
    pub(crate) many_texts: bool,
}

/// Loaded sentence transformer.
pub struct Transformer {
    model: Model,
    tokenizer: WordPiece,
    ids: NodeId,
    mask: NodeId,
    /// Input for sentence numbers, which many models require.
    types: Option<NodeId>,
    output: NodeId,
    pooling: Pooling,
    max_tokens: usize,
    /// Threads for a single text: one per processor, shared by all users of the model.
    together: OnceLock<RunOptions>,
}

impl std::fmt::Debug for Transformer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} of {} tokens", self.pooling, self.max_tokens)
    }
}

impl Transformer {
    /// Loads a model and, in parallel, its tokenizer.
    pub(crate) fn load(
        parts: Parts,
        tokenizer: impl FnOnce() -> Result<WordPiece, EmbedError> + Send,
    ) -> Result<Self, EmbedError> {
        let (model, tokenizer) = thread::scope(|scope| {
            let tokenizer = scope.spawn(tokenizer);
            let mut options = ModelOptions::with_ops(operators());
            for (name, bytes) in parts.weights {
                match bytes {
                    Cow::Borrowed(bytes) => options.external_data_static(&name, bytes),
                    Cow::Owned(bytes) => options.external_data(&name, bytes),
                };
            }
            // Costs 4 ms and 20 MB once for the built-in model, and saves 2.5 ms per text.
            options.prepack_weights(parts.many_texts);
            if parts.is_checked {
                options.shape_inference(ShapeInferenceMode::Off);
            }
            let model = match parts.model {
                Cow::Borrowed(bytes) => options.load_static_slice(bytes),
                Cow::Owned(bytes) => options.load(bytes),
            };
            (model, tokenizer.join())
        });
        let (model, tokenizer) = (model?, tokenizer.map_err(|_| EmbedError::NoVector)??);
        // Prefers an output that is already pooled.
        let named = [
            "sentence_embedding", "embedding", "token_embeddings", "last_hidden_state",
        ];
        let outputs = model.output_ids();
        let by_name = named.iter().find_map(|name| model.find_node(name));
        let output = by_name.filter(|node| outputs.contains(node));
        Ok(Self {
            ids: model.node_id("input_ids")?,
            mask: model.node_id("attention_mask")?,
            types: model.find_node("token_type_ids"),
            output: output
                .or(outputs.first().copied())
                .ok_or(EmbedError::NoVector)?,
            model,
            tokenizer,
            pooling: parts.pooling,
            max_tokens: parts.max_tokens,
            together: OnceLock::new(),
        })
    }

    /// Embeds texts, in order. Tokens beyond the model's limit are ignored (256 for the built-in
    /// model, about a page). A text without words gets a vector without particular meaning.
    ///
    /// # Errors
    ///
    /// Fails only if the model fails, regardless of the texts.
    pub fn embed(&self, texts: &[&str]) -> Result<Vec<Vector>, EmbedError> {
        thread_local!(static ALONE: RunOptions = on_threads(1));
        if let [text] = texts {
            // Most of the work is laying out the weights, which threads can share.
            let together = self.together.get_or_init(|| on_threads(processors()));
            return Ok(vec![self.embed_one(text, together)?]);
        }
        let embed = |text: &&str| ALONE.with(|options| self.embed_one(text, options));
        each(texts, true, embed).into_iter().collect()
    }

    fn embed_one(&self, text: &str, options: &RunOptions) -> Result<Vector, EmbedError> {
        let tokens = self.tokenizer.encode(text, self.max_tokens);
        let shape = [1, tokens.len()];
        let all = |number: i32| NdTensor::full(shape, number);
        let tokens = NdTensor::from_data(shape, tokens);
        let mut inputs = vec![(self.ids, tokens.into()), (self.mask, all(1).into())];
        inputs.extend(self.types.map(|types| (types, all(0).into())));
        let [output] = self
            .model
            .run_n(inputs, [self.output], Some(options.clone()))?;
        let vector = self.pooled(output).ok_or(EmbedError::NoVector)?;
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        Ok(vector
            .iter()
            .map(|x| x / length.max(f32::MIN_POSITIVE))
            .collect())
    }

    /// Vector of any length from the model's output; `None` if the shape is unexpected.
    fn pooled(&self, output: Value) -> Option<Vector> {
        let output = output.into_tensor::<f32>()?;
        let (shape, numbers) = (output.shape().to_vec(), output.to_vec());
        match shape[..] {
            [1, width] if width > 0 => Some(numbers),
            [1, tokens, width] if tokens > 0 && width > 0 => {
                let tokens: Vec<&[f32]> = numbers.chunks_exact(width).collect();
                Some(self.pooling.pool(&tokens))
            }
            _ => None,
        }
    }
}

fn on_threads(threads: usize) -> RunOptions {
    let mut options = RunOptions::default();
    options.thread_pool = Some(Arc::new(ThreadPool::with_num_threads(threads)));
    options
}

impl Pooling {
    /// Pools the vectors of at least one token.
    fn pool(self, tokens: &[&[f32]]) -> Vector {
        let fold = |fold: fn(f32, f32) -> f32, weight: fn(u16) -> f32| {
            let mut out: Option<Vector> = None;
            for (token, place) in tokens.iter().zip(1..) {
                let weighted = token.iter().map(|x| x * weight(place));
                match &mut out {
                    Some(out) => out
                        .iter_mut()
                        .zip(weighted)
                        .for_each(|(o, x)| *o = fold(*o, x)),
                    None => out = Some(weighted.collect()),
                }
            }
            out.unwrap_or_default()
        };
        let one = |token: Option<&&[f32]>| token.map(|token| token.to_vec()).unwrap_or_default();
        match self {
            // A sum has the direction of the mean, and normalization follows.
            Self::Mean => fold(|a, b| a + b, |_| 1.0),
            Self::WeightedMean => fold(|a, b| a + b, f32::from),
            Self::Max => fold(f32::max, |_| 1.0),
            Self::First => one(tokens.first()),
            Self::Last => one(tokens.last()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_pooled_as_the_model_was_trained() {
        let tokens: [&[f32]; 3] = [&[1.0, 0.0], &[0.0, 5.0], &[2.0, 1.0]];
        let check = |pooling: Pooling, expected: [f32; 2]| {
            assert_eq!(pooling.pool(&tokens), expected, "{pooling:?}");
        };
        check(Pooling::Mean, [3.0, 6.0]);
        check(Pooling::WeightedMean, [7.0, 13.0]);
        check(Pooling::Max, [2.0, 5.0]);
        check(Pooling::First, [1.0, 0.0]);
        check(Pooling::Last, [2.0, 1.0]);
    }
}
