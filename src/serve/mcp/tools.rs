//! An operation as the protocol describes a tool.

use rmcp::model::{Tool, ToolAnnotations};

use super::super::operations::{Effect, Operation};

/// The tool of an operation, with what hosts want to know before they let a model call it.
pub(super) fn of(operation: Operation) -> Tool {
    let effect = operation.effect();
    let annotations = ToolAnnotations::with_title(operation.title())
        .read_only(effect == Effect::Reads)
        .open_world(false);
    // The two others mean nothing where nothing is written.
    let annotations = if effect == Effect::Reads {
        annotations
    } else {
        annotations
            .destructive(effect == Effect::Removes)
            .idempotent(false)
    };
    Tool::new(
        operation.name(),
        operation.description(),
        operation.schema(),
    )
    .with_title(operation.title())
    .with_annotations(annotations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::tokens;

    /// What stands in the context of every agent that has them, used or not.
    #[test]
    fn all_tools_together_cost_little() {
        let said = Operation::ALL.map(|operation| serde_json::to_string(&of(operation)).unwrap());
        let all: usize = said.iter().map(|said| tokens(said)).sum();
        assert!(all < 1_200, "{all} tokens");
    }
}
