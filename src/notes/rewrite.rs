//! Query rewriting before a search.

use crate::notes::find::rewrite::{self, Rewrite};
use memctl_llm::OnProgress;

use crate::store::workspace::error::chain;
use crate::store::workspace::providers::Chosen;
use crate::store::workspace::{Error, Workspace};

/// Rewrites a query with the configured model. Without a model, or with an unusable answer, the
/// result is [`Rewrite::Not`] and a warning.
///
/// # Errors
///
/// Fails if no model can be selected, as for an invalid model name.
pub async fn rewrite(
    workspace: &Workspace,
    query: &str,
    progress: OnProgress<'_>,
) -> Result<(Rewrite, Option<String>), Error> {
    let not = |why: String| {
        Ok((
            Rewrite::Not,
            Some(format!("the query was not rewritten: {why}")),
        ))
    };
    let Chosen::Model(llm) = workspace.providers.choose(None).await? else {
        return not("no model is configured".to_owned());
    };
    let system = workspace.settings.rewrite_prompt.as_deref();
    let request = rewrite::ask(query, system.unwrap_or(rewrite::PROMPT));
    match llm.ask(&request, progress).await {
        Err(error) => not(chain(&error)),
        Ok(reply) => match rewrite::accept(query, &reply.text) {
            Ok(text) => Ok((Rewrite::To(text), None)),
            Err(reason) => not(format!("the answer of `{}`: {reason}", reply.model)),
        },
    }
}
