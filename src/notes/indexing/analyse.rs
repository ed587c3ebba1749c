//! Builds segments from new records: reads and tokenizes them in parallel on all processors.

use std::num::NonZero;
use std::thread;

use memctl_search::Builder;

use super::filter::attributes;
use crate::store::Positions;

use super::held::IndexedSegment;
use super::{Error, NewEntry, Progress, readable};

/// Number of records per worker between two progress reports.
const STEP: usize = 2_048;
/// Number of records below which a second thread does not pay off.
const FEW: usize = 256;

/// Returns the segments of these entries, in their order. Unreadable entries are skipped; `doctor`
/// reports them.
pub(crate) fn analyse(
    files: &[Positions],
    new_entries: &[NewEntry],
    progress: Progress<'_>,
) -> Result<Vec<IndexedSegment>, Error> {
    let share = new_entries
        .len()
        .div_ceil(workers(new_entries.len()))
        .max(1);
    let mut works: Vec<(Work, &[NewEntry])> = new_entries
        .chunks(share)
        .map(|some| (Work::default(), some))
        .collect();
    for start in (0..share).step_by(STEP) {
        thread::scope(|scope| {
            let step = |(work, some): &'_ mut (Work, &'_ [NewEntry])| {
                let end = some.len().min(start + STEP);
                let some = some.get(start..end).unwrap_or_default();
                some.iter().try_for_each(|entry| work.add(files, *entry))
            };
            if let [only] = works.as_mut_slice() {
                return step(only);
            }
            let threads: Vec<_> = works
                .iter_mut()
                .map(|work| scope.spawn(move || step(work)))
                .collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().map_err(|_| Error::Index)?)
        })?;
        progress(
            new_entries.len().min((start + STEP) * works.len()),
            new_entries.len(),
        );
    }
    let done = works.into_iter().flat_map(|(work, _)| work.finish());
    Ok(done.collect())
}

/// Number of threads for a number of records.
pub(super) fn workers(records: usize) -> usize {
    if records < FEW {
        return 1;
    }
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Result of one thread so far.
#[derive(Debug, Default)]
struct Work {
    done: Vec<IndexedSegment>,
    builder: Builder,
    places: Vec<u32>,
}

impl Work {
    fn add(&mut self, files: &[Positions], (kind, place): NewEntry) -> Result<(), Error> {
        let file = files.get(kind).ok_or(Error::Index)?;
        if let Some((key, entry)) = file.any_entry(place)?
            && let Some(document) = readable(&entry)
        {
            let attributes = attributes(&document, key);
            self.builder.add(&attributes, &document.content);
            self.places.push(place);
            if self.builder.is_full() {
                self.close();
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        let builder = std::mem::take(&mut self.builder);
        let places = std::mem::take(&mut self.places);
        if !builder.is_empty() {
            self.done
                .push(IndexedSegment::new(builder.segment(), places));
        }
    }

    fn finish(mut self) -> Vec<IndexedSegment> {
        self.close();
        self.done
    }
}
