//! Offer to let a model word the lessons of past sessions.
//!
//! Number and price of the calls are said first. After five lessons they are shown, and the person says
//! whether the rest is asked too.

use std::path::PathBuf;

use dialoguer::Confirm;
use memctl_llm::Progress;

use crate::cli::ask::{ask, price};
use crate::cli::context::Context;
use crate::cli::ending::wait;
use crate::cli::learn::sessions::show_past;
use crate::cli::output::text::plural;
use crate::cli::start::setup::report::SetupReport;
use crate::lessons::past::past_sessions;
use crate::lessons::past::past_sessions::{PastOptions, PastReport};
use crate::model::error::UserError;

/// Maximum number of calls that are offered.
const MOST_CALLS: usize = 20;
/// Number of lessons after which the person sees them.
const SHOWN: usize = 5;

/// Asks whether past sessions may be asked about, and does it.
pub(crate) fn ask_for(
    context: &Context,
    paths: Vec<PathBuf>,
    project: Option<String>,
    report: &mut SetupReport,
) -> Result<(), UserError> {
    // A person who has just refused the agent as a model is not asked again.
    let model = match &report.model {
        Some(offer) if offer.set => Some(offer.model.clone()),
        Some(_) => return Ok(()),
        None => None,
    };
    let workspace = context.workspace(model.as_deref())?;
    let options = PastOptions {
        project_name: context.project_name(),
        paths,
        project,
        max_calls: MOST_CALLS,
        session: context.session(None),
        ..PastOptions::default()
    };
    let Some(plan) = wait(past_sessions::plan(&workspace, &options))?? else {
        return Ok(());
    };
    let calls = plan.calls();
    if calls == 0 {
        return Ok(());
    }
    let prompt = format!(
        "Let `{}` word the lessons of {}? One call each, about {}.",
        plan.model,
        plural(calls as u64, "past session"),
        price(plan.cost_usd)
    );
    let question = Confirm::new().with_prompt(prompt).default(false);
    if !ask(|| question.interact())? {
        return Ok(());
    }
    let mut is_shown = false;
    let mut stop = None;
    let mut goes_on = |done: usize, so_far: &PastReport| {
        let lessons: usize = so_far.sessions.iter().map(|one| one.lessons.len()).sum();
        if is_shown || lessons < SHOWN || done == calls {
            return Ok(true);
        }
        is_shown = true;
        let mut page = context.printer.page();
        show_past(so_far, &mut page);
        context.printer.note(page.into_text().trim_end());
        let rest = plural((calls - done) as u64, "more session");
        let question = Confirm::new()
            .with_prompt(format!("Go on with {rest}?"))
            .default(true);
        match ask(|| question.interact()) {
            Ok(goes_on) => Ok(goes_on),
            Err(error) => {
                stop = Some(error);
                Ok(false)
            }
        }
    };
    let mut progress = |_: Progress<'_>| {};
    let asked = past_sessions::ask(&workspace, plan, &mut goes_on, &mut progress);
    report.lessons = Some(wait(asked)??);
    stop.map_or(Ok(()), Err)
}
