//! Assembles the prompt that a skill's model would get.

use serde::Serialize;

use crate::model::{Kind, Reflexion, SkillPath};
use crate::prompt::{self, Assembly, Choice};
use crate::skill::Skill;
use crate::store::Selection;

use super::{Engine, Error};

/// A prompt, what it is made of, and what is wrong with the skill.
#[derive(Debug, Serialize)]
pub struct PromptReport {
    /// The skill.
    pub skill: SkillPath,
    /// The prompt and its parts.
    #[serde(flatten)]
    pub assembly: Assembly,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

impl Engine {
    /// The prompt of a skill; for this input, where one is given.
    pub fn prompt(&self, skill: &SkillPath, input: Option<&str>) -> Result<PromptReport, Error> {
        let (_, skill) = self.skill(skill)?;
        let mut warnings: Vec<String> = skill.problems.iter().map(ToString::to_string).collect();
        let assembly = self.assemble(&skill, input, &mut warnings)?;
        Ok(PromptReport {
            skill: skill.path,
            assembly,
            warnings,
        })
    }

    pub(super) fn assemble(
        &self,
        skill: &Skill,
        input: Option<&str>,
        warnings: &mut Vec<String>,
    ) -> Result<Assembly, Error> {
        let of_skill = Selection {
            skill: Some(&skill.path),
            newest: None,
        };
        let rules = self.store.list::<Reflexion>(&of_skill)?;
        warnings.extend(rules.problems.iter().map(ToString::to_string));
        Ok(self.put_together(skill, &rules.records, input))
    }

    pub(super) fn assemble_without_rules(&self, skill: &Skill) -> Assembly {
        self.put_together(skill, &[], None)
    }

    fn put_together(&self, skill: &Skill, rules: &[Reflexion], input: Option<&str>) -> Assembly {
        let choice = Choice {
            input,
            budget: self.settings.rules_tokens,
            now: self.now,
        };
        let directory = self.store.directory();
        let name = directory.file_name().unwrap_or(directory.as_os_str());
        let source = std::path::Path::new(name).join(Kind::Reflexion.file());
        prompt::assemble(
            &skill.layers(),
            rules,
            &source.display().to_string(),
            &choice,
        )
    }
}
