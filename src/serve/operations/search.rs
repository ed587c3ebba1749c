//! `search`: searches records.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::error::UserError;
use crate::model::{Kind, MemoryType, Trust, mark};
use crate::notes::indexing::Filter;
use crate::notes::{self, FindOptions, Found};
use crate::serve::arguments::{LONGEST_QUERY, RESULTS, text};
use crate::store::workspace::Workspace;
use memctl_search::{snippet, words};

use super::token_budget::{apart, is_data};
use super::{NOTICE, Report, token_budget, user_error, with_warnings};

/// Minimum number of tokens of a result; a shorter one is useless.
const LEAST: usize = 24;

/// Search request.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchArgs {
    /// Search query
    pub query: String,
    /// Only this kind
    #[schemars(extend("enum" = KINDS.map(Kind::name)))]
    pub kind: Option<Kind>,
    /// Only this skill, as domain/skill
    pub skill: Option<String>,
    /// Default 5
    #[schemars(range(min = RESULTS.least, max = RESULTS.most))]
    pub limit: Option<u32>,
    /// Tokens of the answer; default 1500
    pub max_tokens: Option<u32>,
}

/// Kinds in the schema, the most useful for an agent first.
const KINDS: [Kind; 6] = [
    Kind::Reflexion,
    Kind::Procedure,
    Kind::Memory,
    Kind::Correction,
    Kind::Execution,
    Kind::Session,
];

/// Search results.
#[derive(Debug, Serialize)]
pub struct Searched {
    /// Notice that unapproved results are data; `None` if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<&'static str>,
    /// Results, best first.
    pub results: Vec<Hit>,
    /// Number of results above the token budget.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
    /// Problems that did not stop the operation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Search result.
#[derive(Debug, Serialize)]
pub struct Hit {
    /// Record id.
    pub id: String,
    /// Record kind.
    pub kind: Kind,
    /// Skill of the record; `None` if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// Memory type; `None` for other kinds.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub memory_type: Option<MemoryType>,
    /// Trust level of the record.
    pub trust: Trust,
    /// Status of a rule or a procedure; `None` for other kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Origin of the record; `None` if the record has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Score: higher is better; comparable within one answer only.
    pub score: f64,
    /// `true` for a weak match: no query word, and only a distant meaning.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub weak: bool,
    /// Text of the record, a procedure with its numbered steps; `…` marks omissions.
    pub text: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(super) const fn is_zero(count: &usize) -> bool {
    *count == 0
}

pub(super) fn search(workspace: &Workspace, args: SearchArgs) -> Result<Searched, UserError> {
    let query = text("query", args.query, LONGEST_QUERY)?;
    let limit = RESULTS.check("limit", args.limit.map(i64::from))?;
    let skill = args.skill.as_deref().map(str::parse).transpose()?;
    let options = FindOptions {
        filter: Filter {
            kind: args.kind,
            skill,
            ..Filter::default()
        },
        ..FindOptions::new(query, limit)
    };
    let report = notes::find(workspace, &options, &mut |_, _| {}).map_err(user_error)?;
    let query_words = words(&report.query);
    let warnings = report.warnings;
    let results = report.results.iter().map(hit).collect();
    let searched = Searched {
        notice: None,
        results,
        left_out: 0,
        warnings,
    };
    Ok(searched.within(token_budget::of(args.max_tokens), &query_words))
}

fn hit(found: &Found) -> Hit {
    Hit {
        id: token_budget::name(&found.name()),
        kind: found.kind,
        skill: found.skill.as_deref().map(token_budget::name),
        memory_type: found.memory_type,
        trust: found.trust,
        // The file is not trusted: these fields may contain anything.
        status: found.status.as_deref().map(token_budget::sanitize),
        source: found.source.as_deref().map(token_budget::sanitize),
        score: found.score,
        weak: found.weak,
        text: token_budget::sanitize(found.content.trim()),
    }
}

impl Hit {
    fn is_data(&self) -> bool {
        is_data(self.kind, self.trust)
    }

    fn line(&self) -> String {
        let of = match (&self.skill, self.memory_type) {
            (Some(skill), _) => format!(" of {skill}"),
            (None, Some(memory_type)) => format!(" ({})", memory_type.name()),
            (None, None) => String::new(),
        };
        let trust = (self.kind == Kind::Reflexion).then_some(self.trust);
        let mark = mark(self.status.as_deref(), self.source.as_deref(), trust);
        let mark = mark.map(|mark| format!(" {mark}")).unwrap_or_default();
        let weak = if self.weak { " (weak match)" } else { "" };
        format!("{} {}{of}{mark}{weak}: {}\n", self.id, self.kind, self.text)
    }
}

impl Searched {
    /// Shortens the results to the token budget: no text has more tokens than another needs to be cut to. If that is
    /// too little for each, the last results are removed.
    fn within(mut self, budget: usize, query_words: &[String]) -> Self {
        let texts: Vec<String> = self.results.iter().map(|hit| hit.text.clone()).collect();
        let sizes: Vec<usize> = texts.iter().map(token_budget::size).collect();
        let mut most = budget;
        loop {
            self.notice = self.results.iter().any(Hit::is_data).then_some(NOTICE);
            if self.results.is_empty() {
                // Warnings alone may be too long, and matter least.
                while !token_budget::fits(&self, budget) && self.warnings.pop().is_some() {}
                return self;
            }
            for ((hit, text), size) in self.results.iter_mut().zip(&texts).zip(&sizes) {
                let length = || (text.chars().count() * most / size).max(8);
                hit.text = match hit.kind {
                    _ if *size <= most => text.clone(),
                    // Steps are read from the first one, and stand at the beginning.
                    Kind::Procedure => token_budget::beginning(text, length()).into_owned(),
                    _ => snippet(text, query_words, length()),
                };
            }
            if token_budget::fits(&self, budget) {
                return self;
            }
            most = most * 4 / 5;
            if most < LEAST {
                self.results.pop();
                self.left_out += 1;
                most = budget;
            }
        }
    }
}

impl Report for Searched {
    fn text(&self, nonce: &str) -> String {
        let mut text = String::new();
        if self.results.is_empty() {
            text.push_str("No matches.\n");
        }
        let shown = |hit: &&Hit| {
            let line = hit.line();
            if hit.is_data() {
                return line;
            }
            // Indentation keeps a line of a record from passing for a line of the answer.
            memctl_redact::lines(&line)
                .collect::<Vec<_>>()
                .join("\n    ")
                + "\n"
        };
        let lines = |hits: &[&Hit]| hits.iter().map(shown).collect();
        text.push_str(&apart(&self.results, Hit::is_data, lines, nonce));
        if self.left_out > 0 {
            let more = self.left_out.to_string();
            text.extend([
                &more,
                " more did not fit: lower `limit`, or raise `max_tokens`.\n",
            ]);
        }
        with_warnings(text, &self.warnings)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn results_fit_their_budget_in_closed_fences(
            texts in proptest::collection::vec((token_budget::tests::text(), any::<bool>()), 0..6),
            budget in 200_usize..2_000,
        ) {
            let hit = |(text, is_of_user): &(String, bool)| Hit {
                id: token_budget::name(text),
                kind: if text.len() % 2 == 0 { Kind::Memory } else { Kind::Procedure },
                skill: Some(token_budget::name(text)),
                memory_type: None,
                status: None,
                source: None,
                trust: if *is_of_user { Trust::User } else { Trust::Observed },
                score: 1.0,
                weak: false,
                text: token_budget::sanitize(text.trim()),
            };
            let searched = Searched {
                notice: None,
                results: texts.iter().map(hit).collect(),
                left_out: 0,
                warnings: vec!["a part of the index is missing".to_owned()],
            };
            token_budget::tests::check(&searched.within(budget, &["obey".to_owned()]), budget);
        }
    }
}
