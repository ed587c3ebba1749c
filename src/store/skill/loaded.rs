//! A loaded skill, its layers and its defects.

use std::fmt;
use std::path::PathBuf;

use crate::model::SkillPath;
use crate::store::skill::bundled::{BundledFile, list_of_files};

/// Loaded skill.
#[derive(Debug, Clone)]
pub struct Skill {
    /// Id of the skill, from the names of its directories.
    pub path: SkillPath,
    /// Absolute path of the skill's directory.
    pub dir: PathBuf,
    /// Model that the author requests, verbatim. The caller decides if it follows. A skill may
    /// never name a program to execute.
    pub model: Option<String>,
    /// Prompt: SKILL.md without the metadata, trimmed, with `\n` line ends.
    pub body: String,
    /// Layers 0 and 1 that exist and are not empty.
    pub context: Vec<Layer>,
    /// Files that the prompt lists, and that a model may ask for.
    pub files: Vec<BundledFile>,
    /// Problems that do not make the skill unusable.
    pub problems: Vec<Problem>,
    /// SKILL.md, relative to the project root.
    pub(super) source: PathBuf,
}

impl Skill {
    /// Non-empty layers 0, 1 and 3, in the order of the prompt.
    pub fn layers(&self) -> Vec<Layer> {
        let own = Layer {
            number: 3,
            source: self.source.clone(),
            text: [self.body.clone(), list_of_files(&self.files)]
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

/// One layer of the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// 0 workspace, 1 domain, 3 skill. Layer 2 has the learned rules, which come from the store.
    pub number: u8,
    /// Path relative to the project root.
    pub source: PathBuf,
    /// Trimmed text; never empty.
    pub text: String,
}

/// Defect of a text with invalid bytes.
pub(super) fn not_utf8(path: PathBuf) -> Problem {
    Problem {
        path,
        line: None,
        message: "has bytes that are not UTF-8; they were replaced".to_owned(),
    }
}
