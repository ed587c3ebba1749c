//! Rows of the files of a kind, in the order of their records.

use crate::model::{IdShape, Kind};
use crate::store::error::{Error, Problem};
use crate::store::files::data::json_file::Snapshot;
use crate::store::files::data::offsets::Row;
use crate::store::files::data_files::DataFile;

use super::query::Selection;
use super::scoped::Scoped;

/// Rows that may match a selection, oldest first.
#[derive(Debug)]
pub(super) struct SelectedRows {
    /// The files of the kind, the shared one first.
    files: Vec<Snapshot>,
    /// Each row with the place of its file.
    rows: Vec<(usize, Row)>,
}

impl SelectedRows {
    /// Returns the rows, each with its file.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&Snapshot, &Row)> {
        self.rows
            .iter()
            .map(|(file, row)| (&self.files[*file], row))
    }

    /// Returns the problems of the files.
    pub(super) fn into_problems(self) -> Vec<Problem> {
        self.files.into_iter().flat_map(|f| f.problems).collect()
    }
}

impl Scoped {
    /// Returns the states of the files of a kind, the shared one first.
    pub(crate) fn snapshots(&self, kind: Kind) -> Result<Vec<Snapshot>, Error> {
        // A record that is approved meanwhile is in the shared file before it leaves the local one.
        let files = DataFile::of(kind).rev();
        let read: Result<Vec<_>, _> = files.map(|file| self.file(file).snapshot()).collect();
        let mut snapshots = read?;
        snapshots.reverse();
        Ok(snapshots)
    }

    /// Returns the rows of a kind that may match the selection.
    pub(super) fn select_all(
        &self,
        kind: Kind,
        selection: &Selection<'_>,
    ) -> Result<SelectedRows, Error> {
        let files = self.snapshots(kind)?;
        let mut rows = Vec::new();
        for file in &files {
            rows.push(self.select(file, kind, selection)?);
        }
        let mut rows = merged(kind, rows);
        let limit = selection.newest.unwrap_or(usize::MAX);
        rows.drain(..rows.len().saturating_sub(limit));
        Ok(SelectedRows { files, rows })
    }
}

/// Merges the rows of the files of a kind, each oldest first, in the order of their ids.
fn merged(kind: Kind, mut files: Vec<Vec<Row>>) -> Vec<(usize, Row)> {
    let (Some(local), Some(shared)) = (files.get(1), files.first()) else {
        let only = files.pop().unwrap_or_default();
        return only.into_iter().map(|row| (0, row)).collect();
    };
    let mut local = local.iter().peekable();
    let order = |row: &Row| IdShape::of(kind, &String::from_utf8_lossy(row.id()));
    let mut rows = Vec::with_capacity(shared.len());
    for row in shared {
        let at = order(row);
        while let Some(earlier) = local.next_if(|other| at.is_some() && order(other) < at) {
            rows.push((1, earlier.clone()));
        }
        rows.push((0, row.clone()));
    }
    rows.extend(local.map(|row| (1, row.clone())));
    rows
}
