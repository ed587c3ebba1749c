//! Checks and repairs of data files, for `doctor`.
//!
//! A check reads every entry of every file and changes nothing. A repair first copies the whole
//! file aside, then rewrites it from the complete entries, byte for byte; text between them stays
//! in the copy. Complete but unreadable entries (a `NaN`, a wrong type) are not damage; they are
//! reported and kept.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};
use memctl_files::json::{self, Stop};
use memctl_files::parallel::{each, processors};
use serde::Serialize;

use crate::model::{Expiry, Kind, Record, by_kind};
use crate::store::access::expiry;
use crate::store::access::query::unreadable;
use crate::store::files::data::scan::patience;
use crate::store::files::data::write::retried;
use crate::store::files::directory::RECOVERED;
use crate::store::primary;
use crate::store::{
    DataFile, Entry, Error, Frame, JsonFile, Lock, Problem, ProblemKind, Row, Scoped, Snapshot,
    atomic,
};

/// Maximum wait for other writers.
const LIMIT: Duration = Duration::from_secs(30);

/// Result of repairing one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Repaired {
    /// The file.
    pub path: PathBuf,
    /// Copy of the file before the repair.
    pub copy: PathBuf,
    /// Number of entries in the file now.
    pub kept: usize,
    /// Number of those entries that were found behind the damage.
    pub salvaged: usize,
    /// Ids of the records that only the copy has: they could not be read.
    pub lost: Vec<String>,
}

impl Scoped {
    /// Returns all problems of the files of a kind, and calls `look` with each of their entries, oldest first.
    /// Requires full access.
    pub fn inspect(&self, kind: Kind, look: &mut dyn FnMut(&Entry)) -> Result<Vec<Problem>, Error> {
        let mut problems = Vec::new();
        for file in DataFile::of(kind) {
            self.must_see_all(file)?;
            let snapshot = self.file(file).by_scan()?;
            let misfits = misfits_of(&snapshot, look)?;
            problems.extend(snapshot.problems);
            problems.extend(self.problems_at(file, misfits)?);
        }
        Ok(problems)
    }

    /// Returns the data files that exist, with the format of each.
    pub fn formats(&self) -> Result<Vec<(DataFile, u64)>, Error> {
        let mut found = Vec::new();
        for kind in Kind::ALL {
            for snapshot in self.snapshots(kind)? {
                if snapshot.file.is_some() {
                    found.push((snapshot.of, snapshot.table.header.format));
                }
            }
        }
        Ok(found)
    }

    fn must_see_all(&self, file: DataFile) -> Result<(), Error> {
        let what = file.name().to_owned();
        self.sees_all().then_some(()).ok_or(Error::OutOfScope(what))
    }

    /// Repairs a torn or damaged file; `None` if there is nothing to repair.
    pub fn repair(&self, of: DataFile, now: DateTime<Utc>) -> Result<Option<Repaired>, Error> {
        self.must_see_all(of)?;
        let lock = Lock::take(self.directory(), LIMIT)?;
        let held = self.held();
        let file = held.file(of);
        retried(|| {
            let snapshot = file.by_scan()?;
            if !snapshot.problems.iter().any(|p| p.kind.is_repairable()) {
                return Ok(None);
            }
            let path = file.path();
            snapshot.check_format()?;
            if self.primary_name()?.is_some() {
                // The database holds the intact records.
                let (_, copy) = copy_aside(&lock, &snapshot, now)?;
                primary::fetch_anew(self, &lock, of.kind)?;
                return Ok(Some(Repaired {
                    path,
                    copy,
                    kept: usize::try_from(file.snapshot()?.table.header.count)
                        .unwrap_or(usize::MAX),
                    salvaged: 0,
                    lost: Vec::new(),
                }));
            }
            repair_file(&lock, file, &snapshot, now).map(Some)
        })
    }
}

/// Fields that make a record act, with how their value begins.
const TYPED: &[(Kind, &str, &[u8])] = &[
    (Kind::Reflexion, "rule", b"\""),
    (Kind::Reflexion, "seen_by", b"["),
    (Kind::Reflexion, "action", b"\""),
    (Kind::Procedure, "lesson", b"\""),
    (Kind::Memory, "content", b"\""),
];

/// Problem of an entry, at its offset.
type Misfit = (u64, ProblemKind, String);

/// Number of entries that one processor checks at a time.
const SHARE: usize = 256;

/// Returns the problems of the entries of a file, in its order, and calls `look` with each entry. Entries are
/// read and looked at one after the other, and checked on all processors.
fn misfits_of(snapshot: &Snapshot, look: &mut dyn FnMut(&Entry)) -> Result<Vec<Misfit>, Error> {
    let rows: Vec<Row> = snapshot.rows().collect();
    let mut misfits = Vec::new();
    let mut ids = HashSet::new();
    for rows in rows.chunks(SHARE * processors()) {
        let entries: Vec<Entry> = rows
            .iter()
            .map(|row| snapshot.entry(row))
            .collect::<Result<_, _>>()?;
        let check = |share: &[Entry]| share.iter().flat_map(misfits_in).collect::<Vec<_>>();
        let checked = each(entries.chunks(SHARE), entries.len() > SHARE, check);
        misfits.extend(checked.into_iter().flatten());
        for entry in entries {
            look(&entry);
            if ids.contains(&entry.id) {
                let message = format!("`{}` is the id of an entry before it", entry.id);
                misfits.push((entry.offset, ProblemKind::Duplicate, message));
            } else if !entry.id.is_empty() {
                ids.insert(entry.id);
            }
        }
    }
    misfits.sort_by_key(|(at, ..)| *at);
    Ok(misfits)
}

/// Returns the problems that an entry has by itself.
fn misfits_in(entry: &Entry) -> Vec<Misfit> {
    let (kind, id) = (entry.kind, &entry.id);
    let mut found = Vec::new();
    if let Err(error) = parse(entry) {
        found.push(unreadable(kind, id, &error));
    }
    if kind.may_expire() && expiry(&entry.text) == Expiry::Unreadable {
        let end = json::field(&entry.text, "expires_at").unwrap_or_default();
        found.push(format!(
            "`expires_at` of `{id}` is {}, which is not a time: the record is hidden until it is corrected",
            String::from_utf8_lossy(end),
        ));
    }
    if id.is_empty() {
        found.push("the entry has no id".into());
    }
    // They are read as if they were not there, so that one mistake of a hand keeps nothing else back.
    let is_other = |(of, field, opening): &&(Kind, &str, &[u8])| {
        let value = json::field(&entry.text, field);
        *of == kind && value.is_some_and(|value| !value.starts_with(opening) && value != b"null")
    };
    for (_, field, opening) in TYPED.iter().filter(is_other) {
        let wanted = if *opening == b"[" { "a list" } else { "a text" };
        found.push(format!(
            "`{field}` of `{id}` is not {wanted}, and does not count"
        ));
    }
    let found = found.into_iter();
    let misfits = found.map(|message| (entry.offset, ProblemKind::Unreadable, message));
    misfits.collect()
}

fn repair_file(
    lock: &Lock,
    file: JsonFile<'_>,
    snapshot: &Snapshot,
    now: DateTime<Utc>,
) -> Result<Repaired, Error> {
    let (path, kind) = (file.path(), file.kind());
    let (bytes, copy) = copy_aside(lock, snapshot, now)?;
    let mut spans: Vec<_> = snapshot.rows().map(|row| row.span()).collect();
    let whole = spans.len();
    spans.extend(salvage(&bytes, &spans, kind));
    spans.sort_by_key(|span| span.start);
    let lost = lost(&bytes, &spans, kind);
    let entries: Vec<&[u8]> = spans.iter().map(|span| &bytes[span.clone()]).collect();
    file.rewrite(snapshot, &Frame::plain(kind).around(kind, &entries))?;
    Ok(Repaired {
        path,
        copy,
        kept: spans.len(),
        salvaged: spans.len() - whole,
        lost,
    })
}

/// Returns the ids that a file names outside of the entries that are kept, each once.
fn lost(bytes: &[u8], kept: &[Range<usize>], kind: Kind) -> Vec<String> {
    let mut ends = vec![0];
    ends.extend(kept.iter().map(|span| span.end));
    let starts = kept.iter().map(|span| span.start).chain([bytes.len()]);
    let gaps = ends.into_iter().zip(starts).filter(|(from, to)| from < to);
    let mut ids: Vec<String> = Vec::new();
    for (from, to) in gaps {
        let text = String::from_utf8_lossy(&bytes[from..to]);
        let parts: Vec<&str> = text.split('"').collect();
        let named = parts.windows(3).filter(|part| part[0] == kind.id_field());
        ids.extend(named.map(|part| part[2].to_owned()));
    }
    ids.retain(|id| Kind::of_id(id) == Some(kind));
    ids.dedup();
    ids
}

/// Copies a file to `recovered/`. Returns its bytes and the path of the copy.
fn copy_aside(
    lock: &Lock,
    snapshot: &Snapshot,
    now: DateTime<Utc>,
) -> Result<(Vec<u8>, PathBuf), Error> {
    let bytes = snapshot.whole()?;
    let aside = lock.directory().below(RECOVERED);
    atomic::create_dir(&aside)?;
    let name = format!("{}.{}.txt", snapshot.of, now.format("%Y%m%d%H%M%S%6f"));
    atomic::replace(&aside, &name, &bytes)?;
    Ok((bytes, aside.join(name)))
}

/// Returns complete entries with an unused id in the parts of the file outside all known entries.
fn salvage(bytes: &[u8], spans: &[Range<usize>], kind: Kind) -> Vec<Range<usize>> {
    let id = |span: &Range<usize>| {
        json::string_field(&bytes[span.clone()], kind.id_field()).map(Cow::into_owned)
    };
    let mut ids: HashSet<String> = spans.iter().filter_map(id).collect();
    let mut spans = spans.iter().peekable();
    let mut found = Vec::new();
    let (mut at, mut wasted) = (0, 0);
    while let Some(next) = memchr::memchr(b'{', &bytes[at..]).map(|n| at + n) {
        while spans.next_if(|span| span.end <= next).is_some() {}
        if let Some(inside) = spans.next_if(|span| span.contains(&next)) {
            at = inside.end;
            continue;
        }
        at = next + 1;
        // No entry extends past the next known one.
        let gap_end = spans.peek().map_or(bytes.len(), |span| span.start);
        let end = json::skip_value(&bytes[..gap_end], next);
        if let Ok(end) = end
            && let Some(id) = id(&(next..end))
            && ids.insert(id)
        {
            found.push(next..end);
            at = end;
            continue;
        }
        wasted += match end {
            Ok(end) => end - next,
            Err(Stop::Malformed(at)) => at - next,
            Err(Stop::Incomplete) => gap_end - next,
        };
        if wasted > patience(bytes.len()) {
            break;
        }
    }
    found
}

fn parse(entry: &Entry) -> Result<(), serde_json::Error> {
    fn check<R: Record>(entry: &Entry) -> Result<(), serde_json::Error> {
        entry.parse::<R>().map(drop)
    }
    by_kind!(entry.kind, check(entry))
}
