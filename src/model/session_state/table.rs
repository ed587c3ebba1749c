//! Table of the known session states, in the order of the source document.
//!
//! A row is data: a new state needs no code. States that belong to the source document's example
//! agent are accepted and stored like the others, but help and docs leave them out.

/// Known state.
pub(super) struct Row {
    /// Word in the file.
    pub(super) name: &'static str,
    /// `true` if the state belongs to the source document's example agent.
    pub(super) is_example: bool,
    /// `true` if the state ends a session.
    pub(super) is_final: bool,
    /// Earlier states that a reviewer may send the session back to.
    pub(super) back_to: &'static [&'static str],
}

/// Row of a state that any agent may use.
const fn general(name: &'static str) -> Row {
    Row {
        name,
        is_example: false,
        is_final: false,
        back_to: &[],
    }
}

/// Row of a state of the source document's example agent.
const fn example(name: &'static str) -> Row {
    Row {
        is_example: true,
        ..general(name)
    }
}

/// Row of a state that ends a session.
const fn last(name: &'static str) -> Row {
    Row {
        is_final: true,
        ..general(name)
    }
}

/// Known states. A session moves down the table, and may skip rows.
pub(super) const TABLE: [Row; 12] = [
    general("initializing"),
    example("analyzing_brand"),
    example("researching_competitors"),
    example("analyzing_trends"),
    example("generating_concepts"),
    example("generating_scripts"),
    Row {
        back_to: &["generating_concepts", "generating_scripts"],
        ..general("awaiting_approval")
    },
    example("generating_videos"),
    general("updating_memory"),
    last("completed"),
    last("error"),
    last("cancelled"),
];
