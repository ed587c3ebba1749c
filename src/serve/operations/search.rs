//! `search`: finds what is remembered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{Engine, FindOptions, Found, Rewrite, RewriteBy};
use crate::error::Explained;
use crate::guard;
use crate::model::{Kind, MemoryType, Trust, mark};
use crate::search::{Filter, Fusion, snippet, words};

use super::fenced::{apart, is_data};
use super::{NOTICE, Report, room, told};

/// So many results where nobody says how many, and at most.
const USUAL: u32 = 5;
const MOST: u32 = 50;
/// A result with less room than this says nothing, in tokens.
const LEAST: usize = 24;

/// What is looked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchArgs {
    /// What to look for
    pub query: String,
    /// Only this kind
    #[schemars(with = "Option<KindArg>")]
    #[serde(default)]
    pub kind: Option<Kind>,
    /// Only this skill, as domain/skill
    #[serde(default)]
    pub skill: Option<String>,
    /// Most results, 5 if not given
    #[schemars(range(min = 1, max = 50))]
    #[serde(default)]
    pub limit: Option<u32>,
    /// Longest answer, 1500 if not given
    #[serde(default)]
    pub max_tokens: Option<u32>,
}

/// The kinds, for the schema: [`Kind`] knows nothing of schemas.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
enum KindArg {
    Reflexion,
    Fix,
    Procedure,
    Memory,
    Correction,
    Execution,
    Session,
}

/// What was found.
#[derive(Debug, Serialize)]
pub struct Searched {
    /// What the results that are observed are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<&'static str>,
    /// Best first.
    pub results: Vec<Hit>,
    /// How many more were found and had no room.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
    /// What went wrong and did not stop it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// One result.
#[derive(Debug, Serialize)]
pub struct Hit {
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: Kind,
    /// The skill that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// Which type of memory it is, if it is one.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub memory_type: Option<MemoryType>,
    /// How far it may be believed.
    pub trust: Trust,
    /// Of a rule or a fix: how it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Who brought it, where the record says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Higher is better; comparable within one answer only.
    pub score: f64,
    /// Its words; `…` where some are left out.
    pub text: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(super) const fn is_zero(count: &usize) -> bool {
    *count == 0
}

pub(super) async fn search(engine: &Engine, args: SearchArgs) -> Result<Searched, Explained> {
    if args.query.trim().is_empty() {
        return Err(Explained::usage(
            "`query` is empty",
            "say in `query` what to look for",
        ));
    }
    let limit = args.limit.unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        return Err(Explained::usage(
            format!("`limit` is {limit}"),
            format!("give a `limit` from 1 to {MOST}"),
        ));
    }
    let skill = args.skill.as_deref().map(str::parse).transpose()?;
    let (rewrite, warning) = match engine.settings.rewrite {
        RewriteBy::Off => (Rewrite::Not, None),
        RewriteBy::Offline => (Rewrite::Offline, None),
        RewriteBy::Model => {
            let rewritten = engine.rewrite(&args.query, &mut |_| {}).await;
            rewritten.map_err(told)?
        }
    };
    let options = FindOptions {
        query: args.query,
        limit: limit as usize,
        filter: Filter {
            kind: args.kind,
            skill,
            ..Filter::default()
        },
        fusion: Fusion::Coverage,
        rewrite,
        explain: false,
    };
    let report = engine.find(&options, &mut |_, _| {}).map_err(told)?;
    let asked = words(report.rewritten.as_deref().unwrap_or(&report.query));
    let mut warnings = report.warnings;
    warnings.extend(warning);
    let results = report.results.iter().map(hit).collect();
    let searched = Searched {
        notice: None,
        results,
        left_out: 0,
        warnings,
    };
    Ok(searched.within(room::of(args.max_tokens), &asked))
}

fn hit(found: &Found) -> Hit {
    Hit {
        id: room::name(&found.name()),
        kind: found.kind,
        skill: found.skill.as_deref().map(room::name),
        memory_type: found.memory_type,
        trust: found.trust,
        // A file that others may write says what it likes.
        status: found.status.as_deref().map(room::outward),
        source: found.source.as_deref().map(room::outward),
        score: found.score,
        text: room::outward(found.content.trim()),
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
        let mark = mark(self.status.as_deref(), self.source.as_deref());
        let mark = mark.map(|mark| format!(" {mark}")).unwrap_or_default();
        format!("{} {}{of}{mark}: {}\n", self.id, self.kind, self.text)
    }
}

impl Searched {
    /// As much of it as there is room for: the texts share it, and where that is too little for each,
    /// the last go.
    fn within(mut self, room: usize, asked: &[String]) -> Self {
        let texts: Vec<String> = self.results.iter().map(|hit| hit.text.clone()).collect();
        let mut share = room;
        loop {
            self.notice = self.results.iter().any(Hit::is_data).then_some(NOTICE);
            if self.results.is_empty() {
                // Warnings alone may be too long, and are the least of it.
                while !room::fits(&self, room) && self.warnings.pop().is_some() {}
                return self;
            }
            let sizes: Vec<usize> = texts[..self.results.len()].iter().map(room::size).collect();
            let level = room::level(&sizes, share);
            for ((hit, text), size) in self.results.iter_mut().zip(&texts).zip(&sizes) {
                hit.text = if *size > level {
                    excerpt(text, asked, *size, level)
                } else {
                    text.clone()
                };
            }
            if room::fits(&self, room) {
                return self;
            }
            if share / self.results.len() < LEAST {
                self.results.pop();
                self.left_out += 1;
                share = room;
            } else {
                share = share * 9 / 10;
            }
        }
    }
}

/// The part of a text of this size in which most of the words stand, of about that many tokens.
fn excerpt(text: &str, asked: &[String], size: usize, level: usize) -> String {
    let length = text.chars().count();
    snippet(text, asked, (length * level / size.max(1)).max(8))
}

impl Report for Searched {
    fn text(&self, nonce: &str) -> String {
        let mut text = String::new();
        if self.results.is_empty() {
            text.push_str("Nothing that is remembered fits.\n");
        }
        let shown = |hit: &&Hit| {
            let line = hit.line();
            if hit.is_data() {
                return line;
            }
            // No line of a record passes for one of the answer.
            guard::lines(&line).collect::<Vec<_>>().join("\n    ") + "\n"
        };
        let lines = |hits: &[&Hit]| hits.iter().map(shown).collect();
        text.push_str(&apart(&self.results, Hit::is_data, lines, nonce));
        if self.left_out > 0 {
            let more = self.left_out.to_string();
            text.extend([
                &more,
                " more had no room: ask for fewer with `limit`, or give a larger `max_tokens`.\n",
            ]);
        }
        for warning in &self.warnings {
            text.extend(["warning: ", warning, "\n"]);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn results_fit_their_budget_in_closed_fences(
            texts in proptest::collection::vec((room::tests::text(), any::<bool>()), 0..6),
            budget in 200_usize..2_000,
        ) {
            let hit = |(text, said): &(String, bool)| Hit {
                id: room::name(text),
                kind: Kind::Memory,
                skill: Some(room::name(text)),
                memory_type: None,
                status: None,
                source: None,
                trust: if *said { Trust::User } else { Trust::Observed },
                score: 1.0,
                text: room::outward(text.trim()),
            };
            let searched = Searched {
                notice: None,
                results: texts.iter().map(hit).collect(),
                left_out: 0,
                warnings: vec!["a part of the index is missing".to_owned()],
            };
            room::tests::check(&searched.within(budget, &["obey".to_owned()]), budget);
        }
    }
}
