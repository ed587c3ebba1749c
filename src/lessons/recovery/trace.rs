//! Steps of a running session since its first failure without a recovery.
//!
//! At a success, the same analysis as for a session file decides whether it recovered a failure,
//! and what fixed it. The trace is short: most failures are never recovered from, and each step
//! costs a write.

use serde::{Deserialize, Serialize};

use crate::lessons::past::learn::clean;
use crate::lessons::recovery::recover::analyse;
use crate::model::Pattern;
use memctl_sessions::Step;

use super::pattern;

/// Maximum number of steps; a failure that is older is given up.
const MOST: usize = 16;
/// Maximum length of a stored call or output, in bytes.
const LONGEST: usize = 3_000;

/// Recent steps of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Trace(Vec<TraceStep>);

/// Step of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct TraceStep {
    tool: String,
    /// Command, or the whole input of another tool as JSON.
    call: String,
    output: String,
    failed: bool,
}

impl Trace {
    /// Returns `true` if a failure waits for its recovery.
    pub(crate) fn is_open(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns `true` if there is nothing to store.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a failed call.
    pub(crate) fn failed(&mut self, tool: Option<&str>, call: &str, output: &str) {
        self.push(tool, call, output, true);
    }

    /// Adds a successful call. Returns what it teaches, if it recovered a failure.
    pub(crate) fn succeeded(
        &mut self,
        tool: Option<&str>,
        call: &str,
        output: &str,
    ) -> Vec<Pattern> {
        if !self.is_open() {
            return Vec::new();
        }
        self.push(tool, call, output, false);
        let steps = self.0.iter().enumerate();
        let steps: Vec<Step> = steps.map(|(at, step)| step.step(at)).collect();
        let last = steps.len().saturating_sub(1);
        let analysis = analyse(&steps, &[]);
        let over = analysis
            .episodes
            .iter()
            .filter(|episode| episode.success_step == last);
        let mut recovered: Vec<usize> = Vec::new();
        let mut patterns = Vec::new();
        for episode in over {
            recovered.push(episode.fail_step);
            recovered.extend(&episode.also_fail_steps);
            patterns.extend(pattern::of_episode(episode, &steps, &clean));
        }
        if !recovered.is_empty() {
            let mut at = 0;
            self.0.retain(|_| {
                at += 1;
                !recovered.contains(&(at - 1))
            });
        }
        self.shorten();
        patterns
    }

    fn push(&mut self, tool: Option<&str>, call: &str, output: &str, failed: bool) {
        self.0.push(TraceStep {
            tool: tool.unwrap_or_default().to_owned(),
            call: cut(call),
            output: cut(output),
            failed,
        });
        self.0.drain(..self.0.len().saturating_sub(MOST));
        self.shorten();
    }

    /// Drops the steps before the first failure.
    fn shorten(&mut self) {
        let first = self.0.iter().position(|step| step.failed);
        self.0.drain(..first.unwrap_or(self.0.len()));
    }
}

impl TraceStep {
    fn step(&self, index: usize) -> Step {
        Step {
            index,
            output: self.output.clone(),
            is_error: Some(self.failed),
            answered: true,
            ..Step::of_call(&self.tool, &self.call)
        }
    }
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(LONGEST)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASH: Option<&str> = Some("Bash");

    #[test]
    fn a_recovery_is_seen_at_its_success() {
        let mut trace = Trace::default();
        assert!(trace.succeeded(BASH, "ls", "").is_empty() && !trace.is_open());
        trace.failed(BASH, "rtk bun run test", "rtk: unknown command bun");
        assert!(trace.succeeded(BASH, "ls -l", "go.sh").is_empty());
        let patterns = trace.succeeded(BASH, "bun run test", "ok");
        assert_eq!(patterns.len(), 1);
        assert_eq!(patterns[0].working_code, "bun run test");
        assert!(!trace.is_open(), "{trace:?}");
    }

    #[test]
    fn a_change_in_between_is_no_pattern_and_old_failures_are_given_up() {
        let mut trace = Trace::default();
        trace.failed(BASH, "./go.sh", "bash: ./go.sh: Permission denied");
        assert!(trace.succeeded(BASH, "chmod +x go.sh", "").is_empty());
        assert!(trace.succeeded(BASH, "./go.sh", "hi").is_empty());
        trace.failed(BASH, "make", "make: *** no rule");
        for n in 0..MOST {
            trace.succeeded(BASH, &format!("echo {n}"), "");
        }
        assert!(!trace.is_open());
    }
}
