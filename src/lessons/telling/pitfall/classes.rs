//! Table of error classes and their rules.
//!
//! The first four rules are the source document's, verbatim. They apply only to an agent that runs
//! code in that document's sandbox. The others state facts about any shell, because agent hosts and
//! models distrust orders from memory.

/// Tool of the source document's sandbox.
pub(super) const SANDBOX_TOOL: &str = "execute_code";

/// Environment that a rule applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunsIn {
    Sandbox,
    Shell,
}

/// Environment, class name, texts that must all occur in the error, and rule.
pub(super) type Class = (RunsIn, &'static str, &'static [&'static str], &'static str);

/// Classes in the order in which they are tried.
pub(super) const CLASSES: &[Class] = &[
    (
        RunsIn::Sandbox,
        "NameError",
        &["NameError", "not defined"],
        "Variables do NOT persist between execute_code calls. Always re-query data you need.",
    ),
    (
        RunsIn::Sandbox,
        "globals()/locals()/eval() not available",
        &["()", "not available"],
        "Use collection methods (.filter, .search, .key_values, .fields) instead.",
    ),
    (
        RunsIn::Sandbox,
        "Code rejected: import",
        &["Code rejected", "import"],
        "json, defaultdict, Counter, OrderedDict, and math are pre-loaded -- do not import.",
    ),
    (
        RunsIn::Sandbox,
        "KeyError",
        &["KeyError"],
        "Check field names with aggregate() to verify exact names before accessing.",
    ),
    (
        RunsIn::Shell,
        "ModuleNotFoundError",
        &["ModuleNotFoundError"],
        "The Python interpreter that ran has not got this package.",
    ),
    (
        RunsIn::Shell,
        "command not found",
        &["command not found"],
        "A program was not installed here, or not on the PATH of this shell.",
    ),
    (
        RunsIn::Shell,
        "No such file or directory",
        &["No such file or directory"],
        "A file or directory was not found, seen from the directory in which the command ran.",
    ),
    (
        RunsIn::Shell,
        "Permission denied",
        &["ermission denied"],
        "This user lacks a right that the command needed: to read, write or execute a file, or to use a service.",
    ),
    (
        RunsIn::Shell,
        "NameError",
        &["NameError", "not defined"],
        "A Python name was not defined: nothing persists from one `python3 -c` or script to the next.",
    ),
    (
        RunsIn::Shell,
        "KeyError",
        &["KeyError"],
        "A key was missing: the data did not have the field that the code took for granted.",
    ),
    (
        RunsIn::Shell,
        "address already in use",
        &["ddress already in use"],
        "Another process listens on this port.",
    ),
    (
        RunsIn::Shell,
        "timed out",
        &["timed out"],
        "A time limit passed: that of the call, of the command or of a connection.",
    ),
];
