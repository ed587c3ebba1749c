//! Joins two audit logs that diverged from a common beginning.
//!
//! Our lines stay in place, byte for byte. Those of theirs that are not among ours follow with new
//! numbers and hashes, and a final line names their last hash. If their chain was broken, a line
//! says so, and every verification reports it.
//!
//! The result is deterministic: the final line has the time of the newest line.

use std::collections::HashSet;

use crate::store::error::Error;
use crate::store::files::directory::AUDIT_LOG;
use crate::store::files::directory::Identity;

use super::audit_log::{AuditAction, Line};
use super::chain::{Anchor, Key, sealed, split, text};

/// The joined log and its anchor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// Text of `audit.jsonl`.
    pub log: String,
    /// Text of `audit.anchor`.
    pub anchor: String,
}

/// A parsed log.
#[derive(Default)]
struct Parts<'a> {
    /// Each line without its number and its hash, which depend on the place.
    events: Vec<&'a str>,
    /// Hash of the last line.
    last: &'a str,
    /// Time of the newest line.
    newest: String,
    is_broken: bool,
}

impl<'a> Parts<'a> {
    fn of(log: &'a str, key: &Key) -> Result<Self, &'static str> {
        if !log.is_empty() && !log.ends_with('\n') {
            return Err("the last line is incomplete");
        }
        let mut parts = Self::default();
        for line in log.lines() {
            let unfit = "it contains a line that is not an audit event";
            let (body, hash) = split(line.as_bytes()).ok_or(unfit)?;
            let is_linked = key.hash(parts.last.as_bytes(), body)[..] == *hash;
            if !is_linked && parts.events.is_empty() {
                // Under another key, every line would count as changed.
                return Err("it belongs to another workspace");
            }
            parts.is_broken |= !is_linked;
            let (_, event) = line[..body.len()].split_once(',').ok_or(unfit)?;
            parts.events.push(event);
            parts.last = line
                .get(line.len() - hash.len() - 2..line.len() - 2)
                .ok_or(unfit)?;
            let at = serde_json::from_str::<Line>(line).map(|line| line.at);
            parts.newest = parts.newest.max(at.unwrap_or_default());
        }
        Ok(parts)
    }
}

/// Joins their log to ours. `renamed` lists the new ids of their records.
///
/// # Errors
///
/// [`Error::Unjoinable`] if a log is torn, or was written under another key.
pub fn join(
    identity: &Identity,
    ours: &str,
    theirs: &str,
    who: &str,
    renamed: &[(String, String)],
) -> Result<Joined, Error> {
    let refused = |reason: &'static str| Error::Unjoinable {
        name: AUDIT_LOG,
        reason,
    };
    let key = Key::new(&identity.tombstone_key).ok_or_else(|| refused("there is no key"))?;
    let (a, b) = (
        Parts::of(ours, &key).map_err(refused)?,
        Parts::of(theirs, &key).map_err(refused)?,
    );
    let existing: HashSet<&str> = a.events.iter().copied().collect();
    let new: Vec<&str> = b
        .events
        .into_iter()
        .filter(|e| !existing.contains(e))
        .collect();
    let mut log = ours.to_owned();
    let (mut lines, mut last) = (a.events.len() as u64, a.last.to_owned());
    let mut push = |event: &str| {
        lines += 1;
        let body = format!("{{\"seq\":{lines},{event}");
        last = text(&key.hash(last.as_bytes(), body.as_bytes()));
        log.push_str(&sealed(body, &last));
    };
    if !new.is_empty() {
        let own = |did: AuditAction, why: String, records: Vec<String>| -> Result<String, Error> {
            let line = Line {
                seq: 0,
                at: a.newest.clone().max(b.newest.clone()),
                who: who.to_owned(),
                did,
                records,
                of: Vec::new(),
                why,
            };
            let mut body = serde_json::to_string(&line)?;
            body.pop();
            Ok(body
                .split_once(',')
                .map_or_else(String::new, |(_, event)| event.to_owned()))
        };
        for event in &new {
            push(event);
        }
        if b.is_broken {
            push(&own(
                AuditAction::Broken,
                "git: their log".to_owned(),
                Vec::new(),
            )?);
        }
        let why = format!("git: {} lines up to {}", new.len(), b.last);
        let records = renamed.iter().map(|(from, to)| format!("{from} → {to}"));
        push(&own(AuditAction::Merged, why, records.collect())?);
    }
    let anchor = Anchor::new(&key, lines, log.len() as u64, last).render()?;
    Ok(Joined { log, anchor })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;
    use crate::store::access::scoped::Scoped;
    use crate::store::audit::audit_log::AuditContext;
    use crate::store::files::directory::{AUDIT_ANCHOR as ANCHOR, AUDIT_LOG as FILE};
    use memctl_files::named;

    /// Creates a directory whose log extends another one by this number of lines.
    fn grown(from: Option<&tempfile::TempDir>, name: &str, lines: usize) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for file in ["workspace.json", FILE, ANCHOR] {
            if let Some(from) = from
                && let Ok(text) = std::fs::read(from.path().join(file))
            {
                named::replace(&dir.path().join(file), &text).unwrap();
            }
        }
        let store = store(&dir);
        drop(store.write(&mut || "key".to_owned()).unwrap());
        for n in 0..lines {
            store
                .audit(AuditAction::Read, &[(&format!("{name}-{n}"), None)])
                .unwrap();
        }
        dir
    }

    fn store(dir: &tempfile::TempDir) -> Scoped {
        Scoped::new(dir.path(), Scope::All).acting(AuditContext {
            who: "ann".to_owned(),
            at: "2026-01-01T00:00:00Z".to_owned(),
            ..AuditContext::default()
        })
    }

    fn read(dir: &tempfile::TempDir) -> String {
        std::fs::read_to_string(dir.path().join(FILE)).unwrap_or_default()
    }

    fn joined(ours: &tempfile::TempDir, theirs: &tempfile::TempDir) -> tempfile::TempDir {
        let identity = store(ours).identity().unwrap();
        let joined = join(&identity, &read(ours), &read(theirs), "git", &[]).unwrap();
        let dir = grown(Some(ours), "", 0);
        named::replace(&dir.path().join(FILE), joined.log.as_bytes()).unwrap();
        named::replace(&dir.path().join(ANCHOR), joined.anchor.as_bytes()).unwrap();
        dir
    }

    fn flaws(dir: &tempfile::TempDir) -> Vec<crate::store::ChainError> {
        store(dir).verify_audit(None).unwrap().flaws
    }

    #[test]
    fn two_logs_are_one_that_is_sound_and_goes_on() {
        for (common, a, b) in [(3, 2, 4), (0, 2, 3), (3, 0, 2), (3, 2, 0), (0, 0, 1)] {
            let base = grown(None, "base", common);
            let (ours, theirs) = (grown(Some(&base), "a", a), grown(Some(&base), "b", b));
            let both = joined(&ours, &theirs);
            assert_eq!(flaws(&both), [], "{common} {a} {b}\n{}", read(&both));
            let lines = common + a + b + usize::from(b > 0);
            assert_eq!(read(&both).lines().count(), lines);
            let of_theirs = read(&theirs);
            for noted in read(&ours).lines().chain(of_theirs.lines().last()) {
                let hash = &noted[noted.len() - 66..noted.len() - 2];
                assert_eq!(store(&both).verify_audit(Some(hash)).unwrap().flaws, []);
            }
            store(&both)
                .audit(AuditAction::Read, &[("next", None)])
                .unwrap();
            assert_eq!(flaws(&both), []);
            // Joining again adds nothing.
            assert_eq!(read(&joined(&both, &theirs)), read(&both));
            // A third log, and back.
            let third = grown(Some(&theirs), "c", 2);
            let all = joined(&both, &third);
            assert_eq!(flaws(&all), []);
            assert_eq!(flaws(&joined(&third, &all)), []);
        }
    }

    #[test]
    fn a_line_of_either_side_cannot_be_changed_or_taken_out() {
        let base = grown(None, "base", 2);
        let (ours, theirs) = (grown(Some(&base), "a", 3), grown(Some(&base), "b", 3));
        let both = joined(&ours, &theirs);
        let sound = read(&both);
        let lines: Vec<&str> = sound.lines().collect();
        let put = |lines: &[&str]| {
            named::replace(
                &both.path().join(FILE),
                (lines.join("\n") + "\n").as_bytes(),
            )
            .unwrap();
        };
        for n in 0..lines.len() {
            let mut without = lines.clone();
            without.remove(n);
            put(&without);
            assert!(!flaws(&both).is_empty(), "without line {n}");
            let changed = lines[n].replace("ann", "bob");
            if changed != lines[n] {
                let mut others = lines.clone();
                others[n] = &changed;
                put(&others);
                assert!(!flaws(&both).is_empty(), "line {n} changed");
            }
        }
        // All of their lines, with the joining line.
        put(&lines[..5]);
        assert!(!flaws(&both).is_empty());
        // The last of their lines, with the joining line moved to fit.
        let mut cut = lines.clone();
        cut.remove(7);
        put(&cut);
        assert!(!flaws(&both).is_empty());
        put(&lines);
        assert_eq!(flaws(&both), []);
    }

    #[test]
    fn a_change_of_their_log_is_told_for_ever() {
        let base = grown(None, "base", 2);
        let (ours, theirs) = (grown(Some(&base), "a", 1), grown(Some(&base), "b", 3));
        let forged = read(&theirs).replace("b-1", "b-9");
        named::replace(&theirs.path().join(FILE), forged.as_bytes()).unwrap();
        let both = joined(&ours, &theirs);
        assert_eq!(flaws(&both).len(), 1);
        let third = grown(Some(&both), "c", 1);
        assert_eq!(flaws(&joined(&ours, &third)).len(), 1);
    }

    #[test]
    fn a_log_that_is_torn_is_not_joined() {
        let base = grown(None, "base", 2);
        let identity = store(&base).identity().unwrap();
        let log = read(&base);
        for bad in [&log[..log.len() - 9], "{}\n"] {
            assert!(join(&identity, &log, bad, "", &[]).is_err());
            assert!(join(&identity, bad, &log, "", &[]).is_err());
        }
    }
}
