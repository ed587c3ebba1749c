//! Next steps that fit what was set up.

use crate::cli::context::Context;
use crate::cli::start::init::first_skill;
use crate::model::Scope;
use crate::store::Scoped;

use super::report::{SetupReport, State};

/// Maximum number of next steps.
const MOST: usize = 3;

/// Returns the offer to keep the memory in a database, if one is named and the memory is in files.
pub(crate) fn offer_to_join(context: &Context) -> Option<String> {
    let environment = &context.environment;
    let named = ["MEMCTL_DATABASE_URL", "DATABASE_URL"];
    let is_named = named.iter().any(|name| environment.var(name).is_some());
    let store = Scoped::new(&context.places.memory, Scope::All);
    let is_joined = store.primary_name().is_ok_and(|name| name.is_some());
    let offer = "memctl remote join NAME       keep this memory in the database of DATABASE_URL";
    (is_named && !is_joined).then(|| offer.to_owned())
}

/// Returns the next steps, the most useful first.
pub(super) fn steps(context: &Context, report: &SetupReport) -> Vec<String> {
    let mut next = Vec::new();
    let new_hooks = report
        .steps
        .iter()
        .find(|step| step.name == "hooks" && step.state == State::Done);
    if let Some(host) = new_hooks.and_then(|step| step.host) {
        next.push(format!(
            "start {host} here: a call that fails as before gets the lesson that worked"
        ));
    }
    let waiting = report.learned.map_or(0, |learned| learned.records);
    if waiting > 0 {
        next.push(
            "memctl review                 go over what was learned, and approve it".to_owned(),
        );
    }
    if let Some(offer) = offer_to_join(context) {
        next.push(offer);
    }
    match first_skill(context) {
        Some(skill) => next.push(format!(
            "memctl correct {skill} \"…\"   say once what a skill gets wrong"
        )),
        None => next.push("memctl search \"…\"             find what is remembered".to_owned()),
    }
    next.push("memctl stats                  see what hints and rules were worth".to_owned());
    next.truncate(MOST);
    next
}
