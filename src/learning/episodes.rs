//! Stores the recoveries that are no advice, for `memory why`.
//!
//! An episode is a fix with the status `episode`, the reason, and no procedure.
//! It is never a hint before a person approves it. The newest [`MOST`] stay. An older one is removed
//! for good; its tombstone keeps it from coming back when its session is read again.
//!
//! Deliberately absent: episodes without a fix (a retry, an error that stayed), and similarity.
//! Two edits of one place that are alike are still two.

use chrono::{DateTime, Utc};

use crate::learn::distil::Recovery;
use crate::learn::fix::NoHint;
use crate::model::{EPISODE, Fix, Kind, Origin, Record as _};
use crate::store::Writer;
use crate::workspace::{Error, stamp};

use super::lessons::{Known, Stored, fix_of};

/// Maximum number of episodes.
pub(crate) const MOST: usize = 200;

/// Stores an episode, or counts up an equal one.
pub(crate) fn store_episode(
    writer: &mut Writer,
    known: &mut Known,
    (recovery, reason): (&Recovery, NoHint),
    origin: Origin,
    now: DateTime<Utc>,
    stored: &mut Stored,
) -> Result<(), Error> {
    if let Some(place) = known.equal(recovery) {
        // Code that was learned as a fix is judged already. An approved episode is a fix, too.
        if !known.fixes[place].no_hint.is_empty() {
            let is_counted = known.count_up(place, origin);
            let fix = &known.fixes[place];
            if is_counted && !fix.is_episode() {
                stored.merged.push(fix.fix_id.clone());
            }
        }
        return Ok(());
    }
    let fix = Fix {
        status: EPISODE.to_owned(),
        no_hint: reason.name().to_owned(),
        ..fix_of(recovery, origin, &stamp(now))
    };
    let is_gone = |content: &str| known.forgotten.has_content(Kind::Fix, content);
    if is_gone(&fix.content()) || is_gone(&marked(&fix)) {
        return Ok(());
    }
    known.add(writer.append(fix, now)?);
    stored.kept += 1;
    Ok(())
}

/// Removes the episodes beyond the newest [`MOST`] for good. The order of the file is the order of
/// their age.
pub(crate) fn prune(writer: &mut Writer, known: &Known, now: DateTime<Utc>) -> Result<(), Error> {
    let mut episodes: Vec<&Fix> = known.fixes.iter().filter(|fix| fix.is_episode()).collect();
    episodes.truncate(episodes.len().saturating_sub(MOST));
    let contents: Vec<String> = episodes.iter().map(|fix| marked(fix)).collect();
    let removals: Vec<(&str, &str)> = episodes
        .iter()
        .zip(&contents)
        .map(|(fix, content)| (fix.fix_id.as_str(), content.as_str()))
        .collect();
    if !removals.is_empty() {
        writer.remove_several_for_good(Kind::Fix, &removals, now)?;
    }
    Ok(())
}

/// Content for the tombstone of a removed episode. It differs from that of a fix, so that a lesson
/// with the same code can still be learned.
fn marked(fix: &Fix) -> String {
    format!("{EPISODE}\n{}", fix.content())
}
