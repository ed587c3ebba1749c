//! Table of error classes and their rules.
//!
//! The first four rules are the source document's, verbatim. They apply only to an agent that runs
//! code in that document's sandbox. The others state facts about any shell, because agent hosts and
//! models distrust orders from memory.

/// Tool of the source document's sandbox.
pub(super) const SANDBOX_TOOL: &str = "execute_code";

/// Environment that a rule applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    Sandbox,
    Shell,
}

/// Environment, class name, texts that must all occur in the error, and rule.
pub(super) type Class = (Where, &'static str, &'static [&'static str], &'static str);

/// Classes in the order in which they are tried.
pub(super) const CLASSES: &[Class] = &[
    (
        Where::Sandbox,
        "NameError",
        &["NameError", "not defined"],
        "Variables do NOT persist between execute_code calls. Always re-query data you need.",
    ),
    (
        Where::Sandbox,
        "globals()/locals()/eval() not available",
        &["()", "not available"],
        "Use collection methods (.filter, .search, .key_values, .fields) instead.",
    ),
    (
        Where::Sandbox,
        "Code rejected: import",
        &["Code rejected", "import"],
        "json, defaultdict, Counter, OrderedDict, and math are pre-loaded -- do not import.",
    ),
    (
        Where::Sandbox,
        "KeyError",
        &["KeyError"],
        "Check field names with aggregate() to verify exact names before accessing.",
    ),
    (
        Where::Shell,
        "ModuleNotFoundError",
        &["ModuleNotFoundError"],
        "A Python package was missing: the interpreter in use is not the one that has the project's packages.",
    ),
    (
        Where::Shell,
        "command not found",
        &["command not found"],
        "A program was not installed here, or not on the PATH of this shell.",
    ),
    (
        Where::Shell,
        "No such file or directory",
        &["No such file or directory"],
        "A path did not exist: each command starts in the session's own directory, whatever an earlier `cd` was.",
    ),
    (
        Where::Shell,
        "Permission denied",
        &["ermission denied"],
        "A file or directory could not be changed with the rights of this user.",
    ),
    (
        Where::Shell,
        "NameError",
        &["NameError", "not defined"],
        "A Python name was not defined: nothing persists from one `python3 -c` or script to the next.",
    ),
    (
        Where::Shell,
        "KeyError",
        &["KeyError"],
        "A key was missing: the data did not have the field that the code took for granted.",
    ),
    (
        Where::Shell,
        "address already in use",
        &["ddress already in use"],
        "A port was taken by a process that was still running from before.",
    ),
    (
        Where::Shell,
        "timed out",
        &["timed out"],
        "A command ran into its time limit: it waits for input, or needs longer than one call has.",
    ),
];
