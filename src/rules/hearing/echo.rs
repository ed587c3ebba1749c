//! A statement about the call just made: the other way in which people correct an agent.
//!
//! "vendor/ comes from composer and is wiped on install" has no form of a demand. It names a thing of the
//! call before it, asks nothing and begins with no task. The words are compared, and nothing is
//! understood: the agent that is asked does that.

use std::collections::BTreeSet;

use super::cues::words;

/// Maximum number of words of a statement.
const MOST_WORDS: usize = 45;
/// Minimum length of a word that both have, in characters.
const SHORTEST: usize = 3;

/// Words that say little although a call and a message share them.
const COMMON: &[&str] = &[
    "the", "and", "for", "you", "this", "that", "not", "can", "have", "has", "what", "how", "from",
    "your", "all", "but", "why", "when", "should", "there", "here", "into", "now", "with", "are",
    "was", "let", "use", "using", "also", "code", "file", "files", "test", "tests", "src", "app",
    "apps", "docs", "doc", "api", "dev", "main", "new", "add", "run", "fix", "plan", "user",
    "data", "name", "text", "line", "lines", "branch", "commit", "project", "version", "status",
    "output", "error", "page", "list", "type", "item", "order", "message", "session", "agent",
    "tool",
];

/// First words of tasks, reports and answers.
const TASKS: &[&str] = &[
    "add", "address", "adjust", "apply", "begin", "bring", "build", "call", "change", "check",
    "clean", "commit", "complete", "configure", "continue", "convert", "copy", "create", "debug",
    "delete", "deploy", "design", "do", "ensure", "explain", "export", "extend", "find", "finish",
    "fix", "format", "generate", "get", "give", "go", "help", "implement", "improve", "install",
    "investigate", "let", "let's", "lets", "list", "look", "make", "mention", "merge", "modify",
    "move", "open", "optimize", "proceed", "pull", "push", "read", "refactor", "remove", "rename",
    "replace", "research", "restart", "revert", "review", "revise", "rewrite", "run", "search",
    "set", "show", "simplify", "start", "stop", "summarize", "tell", "test", "translate", "try",
    "undo", "update", "upgrade", "verify", "write", "can", "could", "would", "will", "is", "are",
    "does", "did", "what", "where", "when", "which", "who", "how", "why", "i'm", "i've", "now",
    "still", "getting", "looks", "seems", "thanks", "thank", "great", "perfect", "nice", "i",
];

/// Words before the first one that counts.
const FILLERS: &[&str] = &[
    "ok", "okay", "so", "and", "please", "then", "well", "hmm", "hm", "alright", "good", "great",
    "yes", "yeah", "also", "oh", "hey", "before", "doing", "that", "the", "a",
];

/// Returns `true` if a message of a person states something about one of the calls just made.
pub(crate) fn states_of(message: &str, calls: &[String]) -> bool {
    let lower = message.trim().to_lowercase();
    let all = words(&lower);
    let is_statement = !all.is_empty()
        && all.len() <= MOST_WORDS
        && !lower.contains("\n\n")
        && !lower.starts_with(['[', '<', '/', '@'])
        && !lower.contains(['?', '？']);
    let first = all.iter().find(|word| !FILLERS.contains(&word.as_str()));
    let is_task = first.is_none_or(|word| TASKS.contains(&word.as_str()));
    if !is_statement || is_task {
        return false;
    }
    let of_calls: BTreeSet<String> = calls.iter().flat_map(|call| things(call)).collect();
    things(&lower).iter().any(|word| of_calls.contains(word))
}

/// Words of a text and their parts: `crawl.py`, `crawl`, `py`.
fn things(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    let all = words(&lower);
    let parts = all.iter().flat_map(|word| word.split(['.', '-', '_']));
    let found = parts.chain(all.iter().map(String::as_str)).filter(|word| {
        word.chars().count() >= SHORTEST
            && word.contains(char::is_alphabetic)
            && !COMMON.contains(word)
    });
    let versions = all
        .iter()
        .filter(|word| word.matches('.').count() > 1 && !word.contains(char::is_alphabetic));
    found.map(str::to_owned).chain(versions.cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_about_the_call_before_it_passes() {
        let check = |message: &str, call: &str, expected: bool| {
            assert_eq!(
                states_of(message, &[call.to_owned()]),
                expected,
                "{message}"
            );
        };
        check("no sed please, it breaks on macs", "sed -i s/a/b/ x", true);
        check(
            "gen/ is written by protoc and thrown away each time",
            "{\"file_path\":\"gen/a.rs\"}",
            true,
        );
        check(
            "Tags heißen hier rel-2026.03.01, nie 1.4.0",
            "git tag 1.4.0",
            true,
        );
        check(
            "stdout belongs to the protocol. Logger only",
            "print to stdout",
            true,
        );
        // A task, a question, a report, an answer.
        check(
            "update gen/a.rs as well",
            "{\"file_path\":\"gen/a.rs\"}",
            false,
        );
        check("is gen/ generated?", "{\"file_path\":\"gen/a.rs\"}", false);
        check("I get an error from protoc", "protoc a.proto", false);
        check("yes", "protoc a.proto", false);
        // Nothing of the call.
        check("the header is too dark", "protoc a.proto", false);
        check("the header is too dark", "", false);
    }
}
