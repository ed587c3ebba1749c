//! Loader for exported sentence transformers: an ONNX network, its tokenizer files, and the
//! metadata of the `sentence-transformers` library.
//!
//! It takes file contents, not paths. Missing settings default as in the library: mean pooling, no
//! case. Unsupported features are refused, since a wrong vector is worse than none: tokenizers
//! other than `WordPiece`, several poolings at once, layers outside the network.

use std::borrow::Cow;

use serde_json::Value;
use xxhash_rust::xxh3::Xxh3;

use super::transformer::{EmbedError, Parts, Pooling, Transformer};
use super::wordpiece::{Spelling, WordPiece};

/// Default maximum number of tokens.
const MAX_TOKENS: usize = 256;
/// Upper limit for the maximum number of tokens: the work grows with its square.
const MOST_TOKENS: usize = 2_048;

/// Files of an export; `None` if missing. Required are the network and one of the two vocabularies.
#[derive(Default, Clone)]
pub struct Export {
    /// `model.onnx`.
    pub model: Vec<u8>,
    /// External weights, by file name.
    pub weights: Vec<(String, Vec<u8>)>,
    /// `tokenizer.json`.
    pub tokenizer: Option<String>,
    /// `vocab.txt`.
    pub vocabulary: Option<String>,
    /// `tokenizer_config.json`.
    pub tokenizer_config: Option<String>,
    /// `1_Pooling/config.json`.
    pub pooling: Option<String>,
    /// `sentence_bert_config.json`.
    pub sentence: Option<String>,
    /// `modules.json`.
    pub modules: Option<String>,
}

impl std::fmt::Debug for Export {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "an export of {} bytes", self.model.len())
    }
}

impl Export {
    /// Hash of everything that affects vectors, as eight hexadecimal digits.
    pub fn digest(&self) -> String {
        let mut hash = Xxh3::new();
        let texts = [
            &self.tokenizer, &self.vocabulary, &self.tokenizer_config, &self.pooling,
            &self.sentence,
        ];
        let texts = texts.map(|text| text.as_deref().unwrap_or_default().as_bytes());
        let weights = self.weights.iter().map(|(_, bytes)| bytes.as_slice());
        for part in [self.model.as_slice()]
            .into_iter()
            .chain(weights)
            .chain(texts)
        {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        format!("{:08x}", hash.digest() >> 32)
    }

    /// Dimensions of a vector, if the export states them.
    ///
    /// # Errors
    ///
    /// Returns [`EmbedError::Unusable`] if the pooling file is not valid JSON.
    pub fn dimensions(&self) -> Result<Option<usize>, EmbedError> {
        let pooling = json(self.pooling.as_deref(), "1_Pooling/config.json")?;
        let said = &pooling["word_embedding_dimension"];
        Ok(said.as_u64().and_then(|said| usize::try_from(said).ok()))
    }

    /// Loads the model.
    ///
    /// # Errors
    ///
    /// Returns [`EmbedError::Unusable`] if the export uses an unsupported feature, and
    /// [`EmbedError::Load`] if the network is broken or needs an operator that is not included.
    pub fn load(self) -> Result<Transformer, EmbedError> {
        let modules = json(self.modules.as_deref(), "modules.json")?;
        for module in modules.as_array().into_iter().flatten() {
            let kind = module["type"].as_str().unwrap_or_default();
            let name = kind.rsplit('.').next().unwrap_or_default();
            if !matches!(name, "Transformer" | "Pooling" | "Normalize") {
                let why = format!("`modules.json` names `{name}`, a layer that is not supported");
                return Err(EmbedError::Unusable(why));
            }
        }
        let pooling = json(self.pooling.as_deref(), "1_Pooling/config.json")?;
        let sentence = json(self.sentence.as_deref(), "sentence_bert_config.json")?;
        let most = sentence["max_seq_length"].as_u64().filter(|most| *most > 2);
        let most = most.and_then(|most| usize::try_from(most).ok());
        let parts = Parts {
            pooling: pooling_of(&pooling)?,
            max_tokens: most.unwrap_or(MAX_TOKENS).min(MOST_TOKENS),
            model: Cow::Owned(self.model),
            weights: own(self.weights),
            is_checked: false,
            many_texts: true,
        };
        let Self {
            tokenizer,
            vocabulary,
            tokenizer_config,
            ..
        } = self;
        Transformer::load(parts, move || {
            let config = json(tokenizer_config.as_deref(), "tokenizer_config.json")?;
            match (tokenizer, vocabulary) {
                (Some(text), _) => described(&json(Some(&text), "tokenizer.json")?),
                (None, Some(lines)) => WordPiece::of_lines(Cow::Owned(lines), spelling(&config))
                    .ok_or_else(|| no_marks("vocab.txt")),
                (None, None) => Err(EmbedError::Unusable(
                    "there is neither `tokenizer.json` nor `vocab.txt`".to_owned(),
                )),
            }
        })
    }
}

fn own(weights: Vec<(String, Vec<u8>)>) -> Vec<(String, Cow<'static, [u8]>)> {
    let own = |(name, bytes)| (name, Cow::Owned(bytes));
    weights.into_iter().map(own).collect()
}

fn no_marks(file: &str) -> EmbedError {
    EmbedError::Unusable(format!("`{file}` has no pieces for begin, end and unknown"))
}

/// Parses a file as JSON; `null` if it is missing.
fn json(text: Option<&str>, file: &str) -> Result<Value, EmbedError> {
    let Some(text) = text else {
        return Ok(Value::Null);
    };
    serde_json::from_str(text)
        .map_err(|error| EmbedError::Unusable(format!("`{file}` is not JSON: {error}")))
}

fn pooling_of(config: &Value) -> Result<Pooling, EmbedError> {
    const NAMES: [(&str, Pooling); 6] = [
        ("pooling_mode_mean_tokens", Pooling::Mean),
        ("pooling_mode_mean_sqrt_len_tokens", Pooling::Mean),
        ("pooling_mode_max_tokens", Pooling::Max),
        ("pooling_mode_cls_token", Pooling::First),
        ("pooling_mode_lasttoken", Pooling::Last),
        ("pooling_mode_weightedmean_tokens", Pooling::WeightedMean),
    ];
    let mut wanted = NAMES.iter().filter(|(name, _)| config[*name] == true);
    match (wanted.next(), wanted.next()) {
        (None, _) => Ok(Pooling::Mean),
        (Some((_, pooling)), None) => Ok(*pooling),
        (Some(_), Some(_)) => Err(EmbedError::Unusable(
            "`1_Pooling/config.json` asks for several poolings at once".to_owned(),
        )),
    }
}

/// Spelling settings of `tokenizer_config.json`; BERT's defaults if it is missing.
fn spelling(config: &Value) -> Spelling {
    let no_case = config["do_lower_case"].as_bool().unwrap_or(true);
    Spelling {
        no_case,
        no_accents: config["strip_accents"].as_bool().unwrap_or(no_case),
    }
}

/// Tokenizer that `tokenizer.json` describes.
fn described(tokenizer: &Value) -> Result<WordPiece, EmbedError> {
    let refuse = |why: &str| Err(EmbedError::Unusable(format!("`tokenizer.json` {why}")));
    let model = &tokenizer["model"];
    let kind = model["type"].as_str().unwrap_or("WordPiece");
    let Some(vocabulary) = model["vocab"].as_object().filter(|_| kind == "WordPiece") else {
        return refuse("is not of the kind `WordPiece`, the only one that is known");
    };
    if model["continuing_subword_prefix"].as_str().unwrap_or("##") != "##" {
        return refuse("marks pieces within a word by something else than `##`");
    }
    let normalizer = &tokenizer["normalizer"];
    let within = normalizer["normalizers"].as_array();
    let spelling = match normalizer["type"].as_str() {
        None => Spelling {
            no_case: false,
            no_accents: false,
        },
        Some("BertNormalizer") => of_normalizer(normalizer),
        Some("Sequence") => match within
            .into_iter()
            .flatten()
            .find(|n| n["type"] == "BertNormalizer")
        {
            Some(normalizer) => of_normalizer(normalizer),
            None => return refuse("has a normalizer that is not known"),
        },
        Some(_) => return refuse("has a normalizer that is not known"),
    };
    let pieces = vocabulary.iter().filter_map(|(piece, number)| {
        let number = number
            .as_i64()
            .and_then(|number| i32::try_from(number).ok())?;
        Some((piece.as_str(), number))
    });
    WordPiece::new(pieces, spelling).ok_or_else(|| no_marks("tokenizer.json"))
}

fn of_normalizer(normalizer: &Value) -> Spelling {
    let no_case = normalizer["lowercase"].as_bool().unwrap_or(true);
    Spelling {
        no_case,
        no_accents: normalizer["strip_accents"].as_bool().unwrap_or(no_case),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::local::{MODEL, VOCABULARY, WEIGHTS};
    use super::*;

    fn export() -> Export {
        Export {
            model: MODEL.to_vec(),
            weights: vec![("model.data".to_owned(), WEIGHTS.to_vec())],
            vocabulary: Some(VOCABULARY.to_owned()),
            ..Export::default()
        }
    }

    #[test]
    fn an_export_makes_the_vectors_of_the_model_it_was_made_of() {
        let texts = ["check compliance", "Été à la mer", "日本語"];
        let expected = super::super::built_in(true).unwrap().embed(&texts).unwrap();
        let check = |export: Export| {
            assert_eq!(export.load().unwrap().embed(&texts).unwrap(), expected);
        };
        check(export());
        let vocab: serde_json::Map<_, _> = VOCABULARY
            .lines()
            .zip(0..)
            .map(|(piece, number)| (piece.to_owned(), Value::from(number)))
            .collect();
        let tokenizer = json!({"model": {"type": "WordPiece", "vocab": vocab},
            "normalizer": {"type": "BertNormalizer", "lowercase": true, "strip_accents": null}});
        check(Export {
            tokenizer: Some(tokenizer.to_string()),
            vocabulary: None,
            ..export()
        });
    }

    #[test]
    fn what_cannot_be_followed_is_refused_by_name() {
        let check = |change: fn(&mut Export), part: &str| {
            let mut export = export();
            change(&mut export);
            let error = export.load().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        check(|e| e.vocabulary = None, "neither `tokenizer.json` nor");
        check(
            |e| e.vocabulary = Some("a\nb".to_owned()),
            "begin, end and unknown",
        );
        check(
            |e| e.pooling = Some("{".to_owned()),
            "1_Pooling/config.json` is not JSON",
        );
        let two = r#"{"pooling_mode_cls_token": true, "pooling_mode_max_tokens": true}"#;
        assert!(pooling_of(&serde_json::from_str(two).unwrap()).is_err());
        check(
            |e| e.modules = Some(r#"[{"type": "sentence_transformers.models.Dense"}]"#.to_owned()),
            "names `Dense`",
        );
        check(
            |e| e.tokenizer = Some(r#"{"model": {"type": "BPE", "vocab": {}}}"#.to_owned()),
            "kind `WordPiece`",
        );
        check(|e| e.model.truncate(1_000), "cannot be loaded");
        check(|e| e.model.clear(), "cannot be loaded");
    }

    #[test]
    fn what_is_said_of_the_pooling_counts() {
        let check = |config: Value, expected| {
            assert_eq!(pooling_of(&config).unwrap(), expected, "{config}");
        };
        check(Value::Null, Pooling::Mean);
        check(
            json!({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}),
            Pooling::First,
        );
        check(json!({"pooling_mode_mean_tokens": true}), Pooling::Mean);
        let export = Export {
            pooling: Some(r#"{"word_embedding_dimension": 768}"#.to_owned()),
            ..Export::default()
        };
        assert_eq!(export.dimensions().unwrap(), Some(768));
    }

    #[test]
    fn another_model_has_another_digest() {
        let one = export();
        let mut other = export();
        other.weights[0].1[77] ^= 1;
        assert_ne!(one.digest(), other.digest());
        assert_eq!(one.digest(), export().digest());
        assert_eq!(one.digest().len(), 8);
    }
}
