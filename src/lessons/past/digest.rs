//! Digest of a past session, for a model: its calls and the messages between them, within a budget.
//!
//! Every call has the informative lines of its result. A failing call gets more of them, and a document most
//! of its text: what a project prescribes costs an agent calls to find, and fails nowhere. If the digest is too
//! long, documents and results of successful calls shrink first. Then the results of looking around go, then
//! those calls. The digest says what is left out. All texts are redacted.

use std::path::Path;

use crate::lessons::failure::error_line::{error_lines, plain};
use crate::lessons::failure::redacted;
use crate::lessons::recovery::episodes::analyse;
use crate::model::text::one_line;
use memctl_redact::beginning;
use memctl_sessions::{Format, Remark, Speaker};

use super::learn::{LearnOptions, workspace};
use super::session_files::read_of;
use crate::lessons::asking::{found_out, looks};
use crate::lessons::session::calls::{SessionCall, SessionCalls, SessionHead};

/// Length of the mark of a cut, and of what it is not worth to cut, in characters.
const MARK: usize = 40;
/// Maximum length of a digest, in characters.
pub(crate) const BUDGET: usize = 48_000;
/// Maximum lengths of the parts of a digest, in characters.
struct Row {
    /// Result of a failing call.
    failure: usize,
    /// Result of a document, of another look around, and of any other call that worked.
    document: usize,
    look: usize,
    other: usize,
    /// Command, and another input: an edit.
    command: usize,
    input: usize,
    /// Message of the person, and of the agent.
    message: usize,
    remark: usize,
}

const ROW: Row = Row {
    failure: 700,
    document: 3_600,
    look: 220,
    other: 220,
    command: 400,
    input: 180,
    message: 400,
    remark: 240,
};
/// The first row with which all fits is taken: a short session is told nearly whole.
const ROWS: [Row; 6] = [
    Row {
        failure: 2_000,
        document: 6_000,
        look: 1_200,
        other: 1_200,
        command: 1_200,
        input: 1_200,
        message: 1_600,
        remark: 600,
    },
    Row {
        failure: 1_200,
        look: 500,
        other: 500,
        command: 700,
        input: 500,
        message: 900,
        ..ROW
    },
    ROW,
    Row {
        document: 900,
        ..ROW
    },
    Row {
        document: 440,
        look: 73,
        other: 73,
        ..ROW
    },
    Row {
        document: 300,
        look: 0,
        other: 73,
        ..ROW
    },
];
/// First row without the messages of the agent. The last one is tried once more without calls of looking around.
const WITHOUT_REMARKS: usize = 4;
/// Files that say how a project is worked on, by the end or a part of their names.
const DOCUMENTS: &[&str] = &[
    ".md", ".mdc", ".rst", ".adoc", "README", "Makefile", "justfile", "package.json",
];

/// Content of a session file, redacted.
#[derive(Debug)]
pub(super) struct ReadSession {
    /// Detected format.
    pub(super) format: Option<Format>,
    /// Calls, each with its whole result.
    pub(super) calls: SessionCalls,
    /// Messages of the person and of the agent.
    pub(super) remarks: Vec<Remark>,
}

impl ReadSession {
    /// Returns `true` if nothing failed and nothing was found out.
    pub(super) fn is_dull(&self) -> bool {
        let calls = &self.calls.calls;
        calls.len() < 2
            || (!calls.iter().any(|call| call.failed) && found_out(&self.calls).is_empty())
    }
}

/// Reads a session; `None` if the file holds none, or one of another project. `root` is that of the memory.
pub(super) fn read(
    path: &Path,
    options: &LearnOptions,
    root: Option<&Path>,
) -> Option<ReadSession> {
    let session = read_of(path, options.format, options.project.as_deref())?;
    let head = SessionHead {
        session: redacted(&session.id),
        project: redacted(&workspace(root, &session, options)),
    };
    let failures = analyse(&session.steps, &session.remarks).failures;
    let calls = session.steps.into_iter().map(|step| SessionCall {
        call: redacted(&step.call_text()),
        failed: failures.binary_search(&step.index).is_ok(),
        output: redacted(&plain(&step.output)),
        tool: step.tool,
    });
    let calls = SessionCalls {
        head,
        calls: calls.collect(),
    };
    let mut remarks = session.remarks;
    remarks.retain(|remark| remark.by != Speaker::Other);
    for remark in &mut remarks {
        remark.text = redacted(&remark.text);
    }
    Some(ReadSession {
        format: session.format,
        calls,
        remarks,
    })
}

/// Returns the digest of a session.
pub(super) fn digest(calls: &[SessionCall], remarks: &[Remark]) -> String {
    let length = |line: &String| line.chars().count() + 1;
    let mut lines = Vec::new();
    let rows = (0..ROWS.len()).map(|row| (row, true));
    for (row, with_looks) in rows.chain([(ROWS.len() - 1, false)]) {
        lines = written(calls, remarks, row, with_looks);
        if lines.iter().map(length).sum::<usize>() <= BUDGET {
            return lines.join("\n");
        }
    }
    // The beginning and the end of a session say most.
    let half = |lines: &mut dyn Iterator<Item = &String>| {
        let mut used = 0;
        let fits = |line: &&String| {
            let fits = used < BUDGET / 2;
            used += length(line);
            fits
        };
        lines.take_while(fits).count()
    };
    let head = half(&mut lines.iter());
    let tail = lines.len() - half(&mut lines[head..].iter().rev());
    let mark = format!("[… {} calls left out …]", tail - head);
    [&lines[..head], &[mark], &lines[tail..]]
        .concat()
        .join("\n")
}

fn written(calls: &[SessionCall], remarks: &[Remark], row: usize, with_looks: bool) -> Vec<String> {
    let [person, agent] = [ROWS[row].message, ROWS[row].remark];
    let as_line = |remark: &Remark| match remark.by {
        Speaker::User => Some(format!("PERSON: {}", on_one_line(&remark.text, person))),
        _ if row >= WITHOUT_REMARKS => None,
        _ => Some(format!("AGENT: {}", on_one_line(&remark.text, agent))),
    };
    let mut lines = Vec::new();
    let mut looked = 0;
    let mut remarks = remarks.iter().peekable();
    for at in 0..=calls.len() {
        let mut next = Vec::new();
        while let Some(remark) = remarks.next_if(|one| one.before <= at || at == calls.len()) {
            next.extend(as_line(remark));
        }
        let is_left_out =
            |call: &&SessionCall| !with_looks && !call.failed && looks(call) && !is_document(call);
        let call = calls.get(at);
        let shown = call.filter(|call| !is_left_out(call));
        next.extend(shown.map(|call| of_call(at + 1, call, &ROWS[row])));
        if looked > 0 && !next.is_empty() {
            lines.push(format!("[{looked} calls of looking around]"));
            looked = 0;
        }
        lines.append(&mut next);
        looked += usize::from(call.is_some() && shown.is_none());
    }
    lines
}

fn of_call(number: usize, call: &SessionCall, row: &Row) -> String {
    let most = if call.command().is_some() {
        row.command
    } else {
        row.input
    };
    let outcome = if call.failed { "FAILED" } else { "ok" };
    let text = call_line(&call.call, most);
    let mut line = format!("{number} {outcome} {}: {text}", call.tool);
    let budget = match call {
        _ if call.failed => row.failure,
        _ if !looks(call) => row.other,
        _ if is_document(call) => row.document,
        _ => row.look,
    };
    let result = excerpt(&call.output, budget, call.failed);
    if !result.is_empty() {
        line.push_str("\n   ");
        line.push_str(&result.replace('\n', "\n   "));
    }
    line
}

/// Returns `true` for a look into a file that says how a project is worked on.
fn is_document(call: &SessionCall) -> bool {
    DOCUMENTS.iter().any(|name| call.call.contains(name))
}

/// Telling part of a result: all of it, or its beginning and end; of a failure its error lines too.
fn excerpt(output: &str, budget: usize, failed: bool) -> String {
    let lines: Vec<&str> = output
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.trim().is_empty())
        .collect();
    let text = lines.join("\n");
    let length = text.chars().count();
    if budget == 0 {
        return String::new();
    }
    if length <= budget + MARK {
        return text;
    }
    let mut errors = String::new();
    let mut left = budget;
    if failed {
        for line in error_lines(output).into_iter().take(3) {
            let line = beginning(&line, budget / 3).into_owned();
            left = left.saturating_sub(line.chars().count() + 1);
            errors.push_str(&line);
            errors.push('\n');
        }
    }
    let head: String = text.chars().take(left * 2 / 3).collect();
    let tail: String = text.chars().skip(length - left / 3).collect();
    let cut = length - left * 2 / 3 - left / 3;
    format!(
        "{errors}{} [… {cut} characters …] {}",
        head.trim_end(),
        tail.trim_start()
    )
}

/// Text of a call on one line, with a mark where its own end. A long one keeps its end, where the program often is.
fn call_line(text: &str, most: usize) -> String {
    let lines = text.lines().map(one_line).filter(|line| !line.is_empty());
    let text = lines.collect::<Vec<_>>().join(" ⏎ ");
    let length = text.chars().count();
    if length <= most {
        return text;
    }
    let end: String = text.chars().skip(length - most / 3).collect();
    format!("{} … {end}", beginning(&text, most * 2 / 3))
}

fn on_one_line(text: &str, most: usize) -> String {
    beginning(&one_line(text), most).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(command: &str, output: &str, failed: bool) -> SessionCall {
        SessionCall {
            tool: "Bash".to_owned(),
            call: command.to_owned(),
            failed,
            output: output.to_owned(),
        }
    }

    #[test]
    fn a_digest_has_every_call_and_more_of_a_failure() {
        let noise = "line of noise\n".repeat(300);
        let remark = |before, by, text: &str| Remark {
            before,
            by,
            text: text.to_owned(),
        };
        let remarks = [
            remark(0, Speaker::User, "build  the\nweb bundle"),
            remark(2, Speaker::Agent, "It is built."),
        ];
        let calls = [
            call(
                "tools/build web",
                &format!("{noise}error: no epoch is set\n{noise}"),
                true,
            ),
            call("BUILD_EPOCH=0 tools/build web", &noise, false),
        ];
        let text = digest(&calls, &remarks);
        assert!(text.starts_with("PERSON: build the web bundle\n1 FAILED Bash: tools/build web\n"));
        assert!(text.contains("error: no epoch is set"), "{text}");
        assert!(text.contains("2 ok Bash: BUILD_EPOCH=0 tools/build web\n"));
        assert!(text.ends_with("\nAGENT: It is built."));
        assert!(text.chars().count() < 4_500, "{}", text.chars().count());
    }

    #[test]
    fn a_long_call_keeps_its_lines_and_its_end() {
        assert_eq!(call_line("cd app\n  make  web", 40), "cd app ⏎ make web");
        let text = format!(
            "cat > a.py <<'E'\n{}\nE\npython3 a.py",
            "x = 1\n".repeat(80)
        );
        let line = call_line(&text, 120);
        assert!(line.starts_with("cat > a.py <<'E' ⏎ x = 1"), "{line}");
        assert!(line.ends_with("⏎ E ⏎ python3 a.py"), "{line}");
        assert!(line.chars().count() < 130, "{line}");
    }

    #[test]
    fn a_long_session_stays_within_the_budget_and_says_what_is_missing() {
        let mut items = vec![call("make first", "done", false)];
        for at in 0..2_000 {
            items.push(call(
                &format!("cat src/file{at}.rs"),
                &"x ".repeat(300),
                false,
            ));
        }
        items.push(call("make last", "error: the end", true));
        let text = digest(&items, &[]);
        assert!(text.chars().count() <= BUDGET + 200);
        for part in [
            "make first",
            "make last",
            "error: the end",
            "calls of looking around]",
        ] {
            assert!(text.contains(part), "{part}");
        }
        let many: Vec<SessionCall> = (0..3_000)
            .map(|at| call(&format!("make target{at}"), "ok then", false))
            .collect();
        let text = digest(&many, &[]);
        assert!(text.chars().count() <= BUDGET + 200);
        assert!(
            text.contains("calls left out …]") && text.contains("target2999"),
            "{}",
            text.len()
        );
    }
}
