//! Text that agents get from the memory now: at the start of a session, and in the prompt of a skill.
//!
//! Looking leaves no trace: nothing counts as a retrieval and no read is noted.

use std::path::Path;

use crate::cli::output::Style;
use crate::lessons::HintService;
use crate::model::SkillPath;
use crate::skills;
use crate::skills::prompt::tokens;
use crate::store::Here;
use crate::store::workspace::{Error, Workspace};

use super::text::{Piece, shown};

/// Returns the texts line by line, for the skill of the selected entry if it has one.
pub(super) fn seen(workspace: &Workspace, skill: Option<&str>) -> Result<Vec<Piece>, Error> {
    let workspace = Workspace {
        store: workspace.store.read_only(),
        ..workspace.clone()
    };
    let start = at_start(&workspace)?;
    let mut lines = section("At the start of a session in this project", &start);
    let Some(skill) = skill.and_then(|skill| skill.parse::<SkillPath>().ok()) else {
        return Ok(lines);
    };
    let assembly = skills::prompt(&workspace, &skill, None)?.assembly;
    lines.push((Style::Plain, String::new()));
    let what = format!("Learned part of the prompt of {skill}");
    lines.extend(section(&what, &assembly.learned));
    lines.push((Style::Plain, String::new()));
    for layer in &assembly.layers {
        let size = format!(
            "layer {}  {:>6} tokens  {}",
            layer.layer, layer.tokens, layer.source
        );
        lines.push((Style::Dim, shown(&size)));
    }
    for omitted in &assembly.omitted {
        let reason = format!("{} is left out: {}", omitted.id, omitted.reason);
        lines.push((Style::Dim, shown(&reason)));
    }
    Ok(lines)
}

fn at_start(workspace: &Workspace) -> Result<String, Error> {
    let hints = HintService {
        store: &workspace.store,
        now: workspace.now,
        random: workspace.random,
        here: Here::default(),
    };
    let root = workspace.store.directory().parent();
    let here = Here {
        directory: root,
        root,
        skills: Some(Path::new(&workspace.skills_dir)),
        ..Here::default()
    };
    hints.session_text("", &here)
}

fn section(heading: &str, text: &str) -> Vec<Piece> {
    let heading = format!("{heading} ({} tokens)", tokens(text));
    let mut lines = vec![(Style::Strong, heading)];
    if text.trim().is_empty() {
        lines.push((Style::Dim, "nothing".to_owned()));
    }
    lines.extend(
        shown(text)
            .lines()
            .map(|line| (Style::Plain, line.to_owned())),
    );
    lines
}
