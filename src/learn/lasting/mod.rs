//! Decides if a correction states something lasting, or is a remark about one output.
//!
//! A linear model over hashed words and the form of the text, trained by `assets/lasting/train.py`.
//! It refuses a text only above a threshold that was chosen for precision, and leaves a wide range
//! to the person. So it does with texts in other languages than English, because neither the model
//! nor the wording of rules reads them.
//!
//! Deliberately absent: lists of phrases. They described the texts that they were written from.

pub mod features;

use std::sync::LazyLock;

use whichlang::Lang;

use features::{BUCKETS, Features};

use super::wording;

static WEIGHTS: &[u8] = include_bytes!("../../../assets/lasting/weights.bin");

/// Reason for a remark.
pub(crate) const REMARK: &str = "it reads like a remark about this one output; say what should hold from now on, as in \
     \"always …\" or \"when …, …\"";
const QUESTION: &str = "it reads like a question; say what should be different from now on";
const PERHAPS_REMARK: &str = "it may be a remark about this one output";
const LANGUAGE: &str = "without a model only English is understood";

/// Verdict on a correction. The reasons are lower-case fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It states something lasting.
    Lasting,
    /// A person has to say whether it does.
    Unsure(&'static str),
    /// It is a remark or a question, with advice.
    Remark(&'static str),
}

/// Trained model. Its file holds little-endian `f32`: the weights of the buckets, those of the
/// cues, the intercept, and the thresholds `sure` and `doubt`.
struct Linear {
    buckets: Vec<f32>,
    cues: Vec<f32>,
    intercept: f32,
    sure: f32,
    doubt: f32,
}

static MODEL: LazyLock<Linear> = LazyLock::new(|| Linear::parse(WEIGHTS));

impl Linear {
    fn parse(bytes: &[u8]) -> Self {
        let mut all: Vec<f32> = bytes
            .as_chunks()
            .0
            .iter()
            .map(|four| f32::from_le_bytes(*four))
            .collect();
        let doubt = all.pop().unwrap_or(f32::INFINITY);
        let sure = all.pop().unwrap_or(f32::INFINITY);
        let intercept = all.pop().unwrap_or_default();
        let cues = all.split_off(BUCKETS.min(all.len()));
        Self {
            buckets: all,
            cues,
            intercept,
            sure,
            doubt,
        }
    }

    /// Log-odds that a text is no rule.
    fn score(&self, features: &Features) -> f32 {
        let sum: f32 = features
            .buckets
            .iter()
            .filter_map(|bucket| self.buckets.get(*bucket))
            .sum();
        // A long text has more words, which must not decide.
        #[expect(clippy::cast_precision_loss, reason = "a text has few words")]
        let norm = (features.buckets.len().max(1) as f32).sqrt();
        let cues = features.cues.iter().zip(&self.cues);
        sum / norm + cues.map(|(cue, weight)| cue * weight).sum::<f32>() + self.intercept
    }
}

/// Decides if a correction states something lasting.
pub(crate) fn judge(said: &str) -> Verdict {
    if !is_english(said) {
        return Verdict::Unsure(LANGUAGE);
    }
    // One word has too few features to judge by.
    if said.split_whitespace().count() < 2 {
        return Verdict::Unsure(PERHAPS_REMARK);
    }
    let score = MODEL.score(&Features::of(said));
    if score <= MODEL.doubt {
        Verdict::Lasting
    } else if score <= MODEL.sure {
        Verdict::Unsure(PERHAPS_REMARK)
    } else if said.trim_end().ends_with('?') {
        Verdict::Remark(QUESTION)
    } else {
        Verdict::Remark(REMARK)
    }
}

/// Returns true if a text is in English. Short technical texts look like any language, so a demand
/// that begins in English counts more than the statistics of the letters.
pub(crate) fn is_english(text: &str) -> bool {
    let rule = wording::as_rule(text);
    rule.contains("ALWAYS")
        || rule.contains("NEVER")
        || whichlang::detect_language(text) == Lang::Eng
}

#[cfg(test)]
mod tests {
    use super::features::CUES;
    use super::*;

    #[test]
    fn the_model_is_whole() {
        assert_eq!(MODEL.buckets.len(), BUCKETS);
        assert_eq!(MODEL.cues.len(), CUES);
        assert!(MODEL.sure.is_finite() && MODEL.doubt < MODEL.sure);
    }
}
