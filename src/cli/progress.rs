//! How far an exchange with the shared store has come.

use crate::remote::SyncStage;

use super::output::{Bar, Printer};

/// A bar for each stage, one after the other.
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
            // The old one goes before there is a new one.
            drop(self.current.take());
            self.current = Some((name, self.printer.bar(name)));
        }
        if let Some((_, bar)) = &self.current {
            let number = |n| usize::try_from(n).unwrap_or(usize::MAX);
            bar.reach(number(done), number(of));
        }
    }
}
