//! `memory conflicts`: rules that say the same, and rules that cannot both be obeyed.

use clap::Args;

use crate::engine::{ConflictsReport, RulePair};
use crate::model::SkillPath;

use super::context::Context;
use super::error::CliError;
use super::output::{Page, Report, Style, plural};

/// Find rules that say the same, and rules that cannot both be obeyed
///
/// Rules are compared within each skill, by what they are for and against and by how they sound;
/// no model is asked and nothing is changed.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  memctl memory conflicts hr/resume-screen")]
pub(super) struct ConflictsArgs {
    /// Only the rules of this skill, as `domain/skill`
    skill: Option<String>,
}

pub(super) fn conflicts(
    context: &Context,
    args: &ConflictsArgs,
) -> Result<Box<dyn Report>, CliError> {
    let skill: Option<SkillPath> = args.skill.as_deref().map(str::parse).transpose()?;
    let engine = context.engine(None)?;
    let bar = context.printer.bar("rules");
    let report = engine.conflicts(skill.as_ref(), &mut |done, of| bar.reach(done, of));
    drop(bar);
    Ok(Box::new(report?))
}

impl Report for ConflictsReport {
    fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn page(&self, page: &mut Page) {
        let mut part = |name: &str, pairs: &[RulePair]| {
            for pair in pairs {
                page.styled(&[
                    (Style::Warn, name),
                    (Style::Plain, &format!(" {}: {}", pair.skill, pair.reason)),
                ]);
                page.field(&pair.a, &pair.text_a);
                page.field(&pair.b, &pair.text_b);
            }
        };
        part("contradiction", &self.contradictions);
        part("duplicate", &self.duplicates);
        if self.contradictions.is_empty() && self.duplicates.is_empty() {
            let rules = plural(self.rules as u64, "rule");
            page.line(format!(
                "Nothing contradicts or repeats itself among {rules}."
            ));
        } else {
            page.styled(&[(Style::Dim, "to remove one of two: memctl memory forget ID")]);
        }
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
