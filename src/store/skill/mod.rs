//! Skills on disk: `skills/<domain>/<skill>/SKILL.md` and the files around it.
//!
//! ```text
//! skills/
//!   WORKSPACE.md                    layer 0: common to all skills
//!   hr/
//!     DOMAIN.md  GUARDRAILS.md      layer 1, and mistakes to avoid
//!     resume-screen/
//!       SKILL.md  GUARDRAILS.md     layer 3: metadata and the prompt
//!       examples/*.json             {"input", "output"} cases
//!       fixtures/*.json             sample inputs
//!       tests/generated/            regression tests from corrections
//! ```
//!
//! Invariants:
//! - The directories name a skill. The name and domain in the metadata are for display only; a
//!   difference is a [`Problem`]. They never decide which rules, tests or records belong to a
//!   skill.
//! - No file outside the skills directory is read, even through symbolic links. The one exception
//!   is `WORKSPACE.md` next to the skills directory, in the project root.
//! - Only a defect that makes a skill unusable is an [`Error`]. Everything else is a [`Problem`] of
//!   a working skill.
//!
//! Deliberately absent: writing (other modules write to paths that [`Skills::place`] allows), and
//! the learned rules, which are layer 2 and come from the store.

mod bundled;
mod cases;
mod discover;
mod error;
mod front_matter;
pub mod guardrails;
mod layers;
mod listing;
mod root;
mod yaml;

use std::fmt;
use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::model::SkillPath;

pub use bundled::BundledFile;
pub use cases::{Example, Examples};
pub use discover::Skills;
pub use error::Error;
pub use front_matter::{FrontMatter, Refused, read as read_front_matter};
pub use layers::Layer;
pub use listing::Listing;
pub use root::MAX_BYTES;

/// Loaded skill.
#[derive(Debug, Clone)]
pub struct Skill {
    /// Id of the skill, from the names of its directories.
    pub path: SkillPath,
    /// Absolute path of the skill's directory.
    pub dir: PathBuf,
    /// Name from the metadata, or of the directory. For display only.
    pub name: String,
    /// Description by the author; empty if missing.
    pub description: String,
    /// Model that the author requests, verbatim. The caller decides if it follows. A skill may
    /// never name a program to execute.
    pub model: Option<String>,
    /// Role of the skill.
    pub role: Role,
    /// Prompt: SKILL.md without the metadata, trimmed, with `\n` line ends.
    pub body: String,
    /// Top-level metadata keys in file order, including unknown ones.
    pub keys: Vec<String>,
    /// All metadata.
    pub metadata: Map<String, Value>,
    /// Layers 0 and 1 that exist and are not empty.
    pub context: Vec<Layer>,
    /// Files that the prompt lists, and that a model may ask for.
    pub files: Vec<BundledFile>,
    /// Problems that do not make the skill unusable.
    pub problems: Vec<Problem>,
    /// SKILL.md, relative to the project root.
    source: PathBuf,
}

impl Skill {
    /// Non-empty layers 0, 1 and 3, in the order of the prompt.
    pub fn layers(&self) -> Vec<Layer> {
        let own = Layer {
            number: 3,
            source: self.source.clone(),
            text: [self.body.clone(), bundled::listing(&self.files)]
                .into_iter()
                .filter(|text| !text.is_empty())
                .collect::<Vec<_>>()
                .join("\n\n"),
        };
        let mut layers = self.context.clone();
        layers.extend((!own.text.is_empty()).then_some(own));
        layers
    }
}

/// Role of a skill. The default is the most common one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// Delegates work.
    Manager,
    /// Does one task.
    #[default]
    Specialist,
    /// Gathers input for a specialist.
    Field,
    /// Works in several steps, with tools.
    Agent,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::Manager, Self::Specialist, Self::Field, Self::Agent];

    /// Spelling in the metadata.
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

/// Defect in a file of a skill that does not make the skill unusable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Path relative to the project root.
    pub path: PathBuf,
    /// Line number from 1; `None` if unknown.
    pub line: Option<usize>,
    /// Description of the defect.
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

    /// Users copy the skills that come with the project.
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

    /// All examples of a skill share one format, which its prompt describes and its sample input
    /// follows.
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
