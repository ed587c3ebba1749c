//! Progress of an exchange with the shared store, and of an answer of a model.

use crate::remote::SyncStage;
use memctl_llm::Progress;

use super::output::{Bar, Printer, Spinner};

/// Returns a callback that shows the progress of an answer on a spinner.
pub(super) fn follow(spinner: &Spinner) -> impl FnMut(Progress<'_>) + Send + use<'_> {
    let mut received = 0;
    move |progress| match progress {
        Progress::Text(text) => {
            received += text.chars().count();
            spinner.say(format!("answering, {received} characters"));
        }
        Progress::Retry { after, reason } => {
            received = 0;
            spinner.say(format!(
                "retrying in {:.1} s: {reason}",
                after.as_secs_f64()
            ));
        }
        Progress::Repair { reason } => {
            received = 0;
            spinner.say(format!("retrying: {reason}"));
        }
    }
}

/// Progress bars, one per stage.
pub(super) struct Bars<'p> {
    printer: &'p Printer,
    current: Option<(&'static str, Bar)>,
}

impl<'p> Bars<'p> {
    pub(super) fn new(printer: &'p Printer) -> Self {
        Self {
            printer,
            current: None,
        }
    }

    pub(super) fn on(&mut self, stage: SyncStage) {
        let (name, done, of) = match stage {
            SyncStage::Compared(done, of) => ("comparing", done, of),
            SyncStage::Pushed(done, of) => ("pushing", done, of),
            SyncStage::Pulled(done, of) => ("pulling", done, of),
            SyncStage::Vectors(done, of) => ("vectors", done, of),
        };
        let is_other = |(current, _): &(&str, Bar)| *current != name;
        if self.current.as_ref().is_none_or(is_other) {
            // The old bar ends before the new one starts.
            drop(self.current.take());
            self.current = Some((name, self.printer.bar(name)));
        }
        if let Some((_, bar)) = &self.current {
            let number = |n| usize::try_from(n).unwrap_or(usize::MAX);
            bar.reach(number(done), number(of));
        }
    }
}
