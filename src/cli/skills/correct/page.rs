//! Report of `correct` as text.

use crate::cli::output::{Page, Report, Style};
use crate::model::RuleRelation;
use crate::rules::{CorrectPreview, CorrectReport};

impl CorrectReport {
    /// Shows the existing rules that the new one contradicts, repeats or narrows.
    fn show_others(&self, page: &mut Page) {
        for conflict in &self.conflicts {
            let what = format!("{}: {} ({})", conflict.id, conflict.rule, conflict.reason);
            let how = if conflict.superseded {
                "replaces"
            } else {
                "conflict"
            };
            page.warn(format!("{how} "), &what);
        }
        for other in &self.related {
            let how = match other.relation {
                RuleRelation::Same => "the same as ",
                RuleRelation::Narrows => "beside ",
                // A contradiction is listed above.
                RuleRelation::Contradicts | RuleRelation::Unrelated => continue,
            };
            let what = format!("{}: {} ({})", other.id, other.rule, other.reason);
            page.note(how, &what);
        }
        for other in &self.similar {
            let what = format!("{}: {}", other.id, other.rule);
            page.warn("similar ", &what);
        }
        if let (Some(other), Some(id)) = (self.similar.first(), &self.reflexion_id) {
            let merge = format!(
                "if one says the same: memctl memory conflicts --merge {} {id}",
                other.id
            );
            page.dim(&merge);
        }
        if self.doubt.is_none() && self.conflicts.iter().any(|conflict| !conflict.superseded) {
            page.dim(
                "both stay active; run the same command with --supersede to replace the older rule",
            );
        }
    }
}

impl Report for CorrectReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        let stored = match &self.execution_id {
            Some(id) => format!("{} (corrects {id})", self.correction_id),
            None => format!("{} (without an example)", self.correction_id),
        };
        page.field("correction", &stored);
        if let Some(reason) = &self.not_learned {
            page.warn("No rule was learned: ", reason);
            page.dim("to keep it as a rule, run the same command with --as-rule");
            return;
        }
        if let Some(id) = &self.reflexion_id {
            let made = match &self.duplicate_of {
                Some(_) => format!("{id} already says the same"),
                None if self.was_candidate => {
                    format!("{id}, proposed by an agent, is now a rule")
                }
                None => format!("{id}, worded by {}", self.distilled_by),
            };
            page.field("rule", &made);
        }
        if let Some(rule) = &self.rule {
            page.field("", rule);
        }
        if let (Some(reason), Some(id)) = (self.doubt, &self.reflexion_id) {
            page.warn("Not in force yet: ", reason);
            page.dim(format!(
                "if it should hold from now on: memctl approve {id}"
            ));
            self.show_others(page);
            return;
        }
        let said = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        page.field(
            "applies",
            &said(&self.applies_when).unwrap_or_else(|| "always".to_owned()),
        );
        if let Some(cause) = said(&self.root_cause) {
            page.field("cause", &cause);
        }
        let why = match self.confidence {
            ..0.65 => "vague: say when it applies and what exactly should change",
            0.65..0.8 => {
                "clear; saying more exactly when it applies, or what changes, would raise it"
            }
            _ => "clear and specific",
        };
        page.field(
            "confidence",
            &format!("{:.0}% ({why})", self.confidence * 100.0),
        );
        page.field(
            "guardrail",
            &match self.guardrails.as_slice() {
                [] => "none changed".to_owned(),
                files => files.join(", "),
            },
        );
        page.field(
            "tests",
            &match self.tests.as_slice() {
                [] if self.execution_id.is_none() => {
                    "none, since no execution was named: --execution-id latest".to_owned()
                }
                [] => "none".to_owned(),
                files => files.join(", "),
            },
        );
        self.show_others(page);
    }
}

impl Report for CorrectPreview {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        page.styled(&[(Style::Strong, "instructions")]);
        self.request.system.lines().for_each(|line| page.line(line));
        page.line("");
        page.styled(&[(Style::Strong, "question")]);
        self.request.user.lines().for_each(|line| page.line(line));
        page.line("");
        let price = match (self.model.as_str(), self.cost_usd) {
            ("offline", _) => "no model is configured, so nothing would be sent".to_owned(),
            (model, Some(cost)) => format!("1 call to `{model}`, about ${cost:.4}"),
            (model, None) => format!("1 call to `{model}`, price not known"),
        };
        let own = &self.without_model;
        match (&own.rule, &own.not_learned) {
            (Some(rule), _) => page.field("offline", rule),
            (None, Some(reason)) => page.field("offline", &format!("no rule: {reason}")),
            (None, None) => {}
        }
        if let Some(doubt) = own.doubt {
            page.field("", &format!("only proposed: {doubt}"));
        }
        page.dim(format!("{price} · nothing was written"));
    }
}
