//! Tool descriptions of the protocol for operations.

use rmcp::model::{Tool, ToolAnnotations};

use super::super::operations::{Effect, Operation};

/// Returns the tool of an operation, with the annotations that agent hosts need before they let a
/// model call it.
pub(super) fn of(operation: Operation) -> Tool {
    let effect = operation.effect();
    // The title stands here alone: the field of the tool itself would repeat it in every context.
    let annotations = ToolAnnotations::with_title(operation.title())
        .read_only(effect == Effect::Reads)
        .open_world(false);
    // Both other annotations apply only to tools that write.
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
    .with_annotations(annotations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skills::prompt::tokens;

    /// All tool descriptions are in the context of every agent, used or not.
    #[test]
    fn all_tools_together_cost_little() {
        let said = Operation::ALL.map(|operation| serde_json::to_string(&of(operation)).unwrap());
        let all: usize = said.iter().map(|said| tokens(said)).sum();
        assert!(all < 1_750, "{all} tokens");
    }
}
