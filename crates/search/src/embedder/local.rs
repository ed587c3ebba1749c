//! Built-in sentence transformer.
//!
//! The model is all-MiniLM-L6-v2 with 8-bit weights (`assets/`). It is part of the
//! program: no download, no disk access, no network. Vectors of texts with similar meaning have a
//! dot product near 1.

use super::Error;
use super::transformer::{Parts, Transformer};
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

#[cfg(test)]
mod tests {
    use super::super::transformer::Vector;
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
