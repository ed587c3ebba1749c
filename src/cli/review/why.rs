//! `memctl why`: origin and effects of a record, as a tree.

use clap::Args;

use crate::cli::context::Context;
use crate::cli::output::{Done, Page, Report, Style, end, plural};
use crate::model::mark;
use crate::upkeep;
use crate::upkeep::{Link, WhyReport};

/// Minimum width of a summary; a shorter one is useless.
const LEAST: usize = 8;

/// Show where a record came from and what came of it
///
/// Links an execution, its correction, the rule, its tests and the executions with the rule in
/// their prompt; or a lesson and the sessions that showed it. For a session, links the
/// lessons that it taught, and its recoveries that are no hint with the reason. Deleted records are
/// marked.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  memctl why REFL-001\n  memctl why latest")]
pub(crate) struct WhyArgs {
    /// Record id, a prefix of one, `latest` for the newest execution, or a session of a host
    id: String,
}

pub(crate) fn why(context: &Context, args: &WhyArgs) -> Done {
    Ok(Box::new(upkeep::why(&context.workspace(None)?, &args.id)?))
}

/// Line of the tree.
struct Line {
    depth: usize,
    relation: &'static str,
    id: String,
    state: String,
    age: String,
    summary: String,
}

impl WhyReport {
    fn lines(&self, page: &Page) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        // Lines to add below all descendants of a link, with its depth.
        let mut open: Vec<(usize, String)> = Vec::new();
        let close = |lines: &mut Vec<Line>, open: &mut Vec<(usize, String)>, depth: usize| {
            while let Some((of, more)) = open.pop_if(|(of, _)| *of >= depth) {
                lines.push(Line::more(of + 1, more));
            }
        };
        for link in &self.chain {
            close(&mut lines, &mut open, link.depth);
            lines.push(Line {
                depth: link.depth,
                relation: link.relation.words(),
                id: link.id.clone(),
                state: state(link),
                age: page.age(&link.at),
                summary: link.summary.clone(),
            });
            if let Some(more) = self.unnamed(link) {
                open.push((link.depth, more));
            }
        }
        close(&mut lines, &mut open, 0);
        lines
    }

    /// Returns a line with the number of executions or places of a link that are not listed.
    fn unnamed(&self, link: &Link) -> Option<String> {
        let (count, noun, kind) = match (link.executions, link.origins) {
            (Some(count), _) => (count, "execution", "execution"),
            (_, Some(count)) => (count, "place", "transcript"),
            _ => return None,
        };
        let is_named = |other: &&Link| {
            other.kind == kind && other.to.as_ref() == Some(&link.id) && other.depth > link.depth
        };
        let named = self.chain.iter().filter(is_named).count() as u64;
        let more = count.saturating_sub(named);
        (more > 0).then(|| format!("… and {}", plural(more, noun).replacen(' ', " more ", 1)))
    }
}

impl Line {
    fn more(depth: usize, text: String) -> Self {
        Self {
            depth,
            relation: "",
            id: text,
            state: String::new(),
            age: String::new(),
            summary: String::new(),
        }
    }
}

/// Returns the state of a link, or its mark if an agent proposed it.
fn state(link: &Link) -> String {
    match mark(link.status.as_deref(), link.source.as_deref()) {
        Some(mark) => mark.to_owned(),
        None => link.state.clone().unwrap_or_default(),
    }
}

/// Returns the branches before a line: on each level, whether a sibling follows.
fn stem(lines: &[Line], at: usize) -> String {
    let depth = lines[at].depth;
    let mut stem = String::new();
    for level in 1..=depth {
        let mut below = lines[at + 1..].iter().map(|line| line.depth);
        let goes_on = below.find(|depth| *depth <= level) == Some(level);
        stem.push_str(match (level == depth, goes_on) {
            (true, true) => "├─ ",
            (true, false) => "└─ ",
            (false, true) => "│  ",
            (false, false) => "   ",
        });
    }
    stem
}

impl Report for WhyReport {
    fn page(&self, page: &mut Page) {
        page.warnings(&self.warnings);
        let lines = self.lines(page);
        for (at, line) in lines.iter().enumerate() {
            let stem = stem(&lines, at);
            let relation = match line.relation {
                "" => String::new(),
                words => format!("{words} "),
            };
            let mut parts = vec![
                (Style::Dim, stem),
                (Style::Dim, relation),
                (Style::Strong, end(&line.id, page.width())),
            ];
            if !line.state.is_empty() {
                let style = match line.state.as_str() {
                    "accepted" | "approved" => Style::Good,
                    "rejected" | "error" => Style::Bad,
                    "pending_review" => Style::Dim,
                    _ => Style::Warn,
                };
                parts.push((style, format!("  {}", line.state)));
            }
            if !line.age.is_empty() {
                parts.push((Style::Dim, format!("  {}", line.age)));
            }
            let used: usize = parts
                .iter()
                .map(|(_, text)| console::measure_text_width(text))
                .sum();
            let room = page.width().saturating_sub(used + 2);
            if room >= LEAST && !line.summary.is_empty() {
                parts.push((Style::Plain, format!("  {}", end(&line.summary, room))));
            }
            let parts: Vec<(Style, &str)> = parts.iter().map(|(s, t)| (*s, t.as_str())).collect();
            page.styled(&parts);
        }
        let evidence = self.evidence;
        page.field(
            "evidence",
            &format!(
                "shown {}, helped {}, harmed {}",
                evidence.shown, evidence.helped, evidence.harmed
            ),
        );
    }
}
