//! Features of a sentence: cues, pairs of cues, lengths and place.
//!
//! A cue is a form of English that people use to say how something is to be done, or what is said
//! about: a habit (`always`), an objection (`why did you`), an activity (`commit`). The patterns are
//! data, shared with the training script. Nothing is decided here: the weights are learned.

use std::sync::LazyLock;

use regex_lite::Regex;
use serde::Deserialize;

/// Place of a sentence in its message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) is_first: bool,
    pub(super) is_last: bool,
    /// Number of words in the message.
    pub(super) words: usize,
}

#[derive(Deserialize)]
struct Patterns {
    cues: Vec<Cue>,
    pairs: Vec<[String; 2]>,
}

#[derive(Deserialize)]
struct Cue {
    name: String,
    pattern: String,
}

struct Cues {
    patterns: Vec<Regex>,
    /// Indexes into `patterns`.
    pairs: Vec<[usize; 2]>,
}

static CUES: LazyLock<Cues> = LazyLock::new(|| {
    #[expect(clippy::unwrap_used, reason = "the file is part of the program")]
    let file: Patterns = serde_json::from_str(include_str!("cues.json")).unwrap();
    let at = |name: &String| {
        let found = file.cues.iter().position(|cue| cue.name == *name);
        #[expect(clippy::unwrap_used, reason = "the file is part of the program")]
        found.unwrap()
    };
    Cues {
        pairs: file.pairs.iter().map(|[a, b]| [at(a), at(b)]).collect(),
        #[expect(clippy::unwrap_used, reason = "the file is part of the program")]
        patterns: file
            .cues
            .iter()
            .map(|cue| Regex::new(&cue.pattern).unwrap())
            .collect(),
    }
});

/// Returns the features of a sentence, as many as the model has weights.
#[expect(
    clippy::cast_precision_loss,
    reason = "a message has far fewer than 2^52 words"
)]
pub(super) fn of(sentence: &str, place: &Place) -> Vec<f64> {
    let text = sentence
        .to_ascii_lowercase()
        .replace('’', "'")
        .replace(['`', '*'], "")
        .replace('_', " ");
    let has: Vec<bool> = CUES
        .patterns
        .iter()
        .map(|cue| cue.is_match(&text))
        .collect();
    let number = |is: bool| if is { 1.0 } else { 0.0 };
    let mut row: Vec<f64> = has.iter().map(|is| number(*is)).collect();
    row.extend(CUES.pairs.iter().map(|[a, b]| number(has[*a] && has[*b])));
    let length = sentence.split_whitespace().count();
    row.extend([
        (length as f64).ln_1p() / 3.0,
        number(length > 25),
        number(place.is_first),
        number(place.is_last),
        (place.words as f64).ln_1p() / 5.0,
        number(place.words > 40),
        number(place.words > 100),
        // Constant term.
        1.0,
    ]);
    row
}
