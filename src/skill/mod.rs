//! Skills on disk: `skills/<domain>/<skill>/SKILL.md` and the files around it.
//!
//! ```text
//! skills/
//!   WORKSPACE.md                    layer 0: what holds for everybody
//!   hr/
//!     DOMAIN.md  GUARDRAILS.md      layer 1, and mistakes not to repeat
//!     resume-screen/
//!       SKILL.md  GUARDRAILS.md     layer 3: metadata and the prompt
//!       examples/*.json             {"input", "output"} cases
//!       fixtures/*.json             inputs to try it with
//!       tests/generated/            regression tests that corrections left
//! ```
//!
//! Invariants:
//! - A skill is named by its directories. What its metadata says about name or domain is shown, and
//!   a [`Problem`] where it differs, but never decides which rules, tests or records belong to it.
//! - Nothing outside the skills directory is read, whatever symbolic links say. The one exception
//!   is a `WORKSPACE.md` beside the skills directory, in the project root.
//! - Only what makes a skill unusable is an [`Error`]. Everything else is a [`Problem`] on a skill
//!   that works.
//!
//! Deliberately absent: writing (other modules write, to places that [`Skills::place`] allows), and
//! the learned rules, which are layer 2 and live in the store.

mod describe;
mod discover;
mod error;
mod examples;
mod front_matter;
mod generated;
pub mod guardrails;
mod layers;
mod lines;
mod listing;
mod root;
pub mod standard;
mod yaml;

use std::fmt;
use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::model::SkillPath;

pub use discover::Skills;
pub use error::Error;
pub use examples::{Example, Examples};
pub use front_matter::{FrontMatter, Refused, read as read_front_matter};
pub use layers::Layer;
pub use listing::Listing;
pub use root::MAX_BYTES;

/// A skill, read whole.
#[derive(Debug, Clone)]
pub struct Skill {
    /// What it is called everywhere: the names of its directories.
    pub path: SkillPath,
    /// Its directory, absolute.
    pub dir: PathBuf,
    /// The name in its metadata, else that of its directory. For display only.
    pub name: String,
    /// What it does, in its author's words; empty where nothing is said.
    pub description: String,
    /// The model that its author asks for, as it is written there. Whoever picks the model decides
    /// whether to follow; a skill may never name a program to execute.
    pub model: Option<String>,
    /// Its part among skills.
    pub role: Role,
    /// The prompt: what is left of SKILL.md without the metadata, trimmed, lines ending in `\n`.
    pub body: String,
    /// The top-level metadata keys in the order of the file, those unknown to us included.
    pub keys: Vec<String>,
    /// All metadata, as read.
    pub metadata: Map<String, Value>,
    /// Layers 0 and 1, as far as they exist and say something.
    pub context: Vec<Layer>,
    /// What is wrong with it and does not stop it.
    pub problems: Vec<Problem>,
    /// SKILL.md, relative to the project root.
    source: PathBuf,
}

impl Skill {
    /// The layers 0, 1 and 3 that say something, in the order of the prompt.
    pub fn layers(&self) -> Vec<Layer> {
        let own = Layer {
            number: 3,
            source: self.source.clone(),
            text: self.body.clone(),
        };
        let mut layers = self.context.clone();
        layers.extend((!own.text.is_empty()).then_some(own));
        layers
    }
}

/// The part that a skill plays among skills. The default is the commonest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// Hands work on.
    Manager,
    /// Does one task.
    #[default]
    Specialist,
    /// Gathers what a specialist needs.
    Field,
    /// Works in several steps, with tools.
    Agent,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [Self::Manager, Self::Specialist, Self::Field, Self::Agent];

    /// As it stands in the metadata.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Manager => "manager",
            Self::Specialist => "specialist",
            Self::Field => "field",
            Self::Agent => "agent",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something that is wrong in a file of a skill, and does not stop the skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, relative to the project root.
    pub path: PathBuf,
    /// The line, from 1, where it can be told.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.message)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use serde_json::value::RawValue;

    use super::guardrails::Guardrail;
    use super::*;

    /// The skills that come with the project are what people copy from.
    #[test]
    fn the_sample_skills_are_beyond_reproach() {
        let project = Path::new(env!("CARGO_MANIFEST_DIR"));
        let skills = Skills::open(&project.join("skills")).unwrap();
        let listing = skills.list().unwrap();
        assert_eq!(listing.problems, []);
        let domains: BTreeSet<&str> = listing.skills.iter().map(SkillPath::domain).collect();
        assert!(
            domains.len() >= 3 && listing.skills.len() >= 5,
            "{listing:?}"
        );
        for path in &listing.skills {
            let skill = skills.load(path).unwrap();
            assert_eq!(skill.problems, [], "{path}");
            assert_eq!(standard::deviations(&skill), [] as [String; 0], "{path}");
            let layers: Vec<u8> = skill.layers().iter().map(|layer| layer.number).collect();
            assert_eq!(layers, [0, 1, 3], "{path}");
            check_cases(&skills, path);
            check_guardrails(&skills, path);
        }
    }

    fn keys(json: &RawValue) -> BTreeSet<String> {
        let map: Map<String, Value> = serde_json::from_str(json.get()).unwrap();
        map.into_iter().map(|(key, _)| key).collect()
    }

    /// All cases of a skill have one form, which its prompt describes and its sample input has too.
    fn check_cases(skills: &Skills, path: &SkillPath) {
        let skill = skills.load(path).unwrap();
        let examples = skills.examples(path).unwrap();
        assert_eq!(examples.problems, [], "{path}");
        let (first, others) = examples.cases.split_first().unwrap();
        assert!(!others.is_empty(), "{path}");
        for case in others {
            assert_eq!(
                keys(&case.output),
                keys(&first.output),
                "{path} {}",
                case.name
            );
            assert_eq!(
                keys(&case.input),
                keys(&first.input),
                "{path} {}",
                case.name
            );
        }
        for key in keys(&first.output).union(&keys(&first.input)) {
            assert!(skill.body.contains(&format!("`{key}`")), "{path}: {key}");
        }
        let sample = skills.sample_input(path).unwrap().unwrap();
        let sample = skills.read(&sample).unwrap().unwrap();
        let sample: Box<RawValue> = serde_json::from_str(&sample).unwrap();
        assert_eq!(keys(&sample), keys(&first.input), "{path}");
    }

    fn check_guardrails(skills: &Skills, path: &SkillPath) {
        let files = skills.guardrail_files(path).unwrap();
        let text = skills.read(&files[0]).unwrap().unwrap();
        let guardrail = Guardrail {
            title: "t",
            mistake: "m",
            rule: "r",
            correction_id: "CORR-999",
        };
        let new = guardrails::append(&text, &guardrail).unwrap();
        let closing = "**Source**: CORR-999\n\n---\n\n## When to Add New Guardrails\n";
        let heading = new.find(": t\n").unwrap();
        assert!(
            new[..heading].ends_with("\n\n---\n\n## GRD-003")
                || new[..heading].ends_with("\n\n---\n\n## GRD-004"),
            "{path}: {new}"
        );
        assert!(new.contains(closing), "{path}: {new}");
    }
}
