//! Joins two audit logs that diverged from a common beginning.
//!
//! Our lines stay in place and theirs follow, byte for byte with their hashes. A line that does not
//! continue from the one above names its predecessor's hash in `"after"`. A final line joins the
//! two: it continues from our last line and names their last hash. Every hash noted elsewhere is
//! therefore still in the log. A changed or removed line on either side breaks the chain there, and
//! the final line reveals a truncation.
//!
//! The result is deterministic: the joining line has the time of the newest line.

use crate::store::error::Error;
use crate::store::files::directory::Identity;
use crate::store::files::file_names::AUDIT_LOG;

use super::audit_event::{AuditAction, Line};
use super::hash::{AFTER_HASH, Anchor, BEFORE_HASH, Key, going_on_from, link, text};

/// The joined log and its anchor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// Text of `audit.jsonl`.
    pub log: String,
    /// Text of `audit.anchor`.
    pub anchor: String,
}

/// A parsed log: each line without its `"after"`, with its predecessor's hash and its own.
struct Parts<'a> {
    lines: Vec<Part<'a>>,
}

struct Part<'a> {
    /// The line without its `"after"`.
    plain: String,
    before: &'a str,
    hash: &'a str,
}

impl<'a> Parts<'a> {
    fn of(log: &'a str) -> Result<Self, &'static str> {
        if !log.is_empty() && !log.ends_with('\n') {
            return Err("the last line is incomplete");
        }
        let mut lines: Vec<Part<'_>> = Vec::new();
        for line in log.lines() {
            let link =
                link(line.as_bytes()).ok_or("it contains a line that is not an audit event")?;
            let utf8 = |bytes: &'a [u8]| std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8");
            let hash = utf8(link.hash)?;
            let body = String::from_utf8_lossy(&link.body);
            let before = match link.after {
                Some(after) => utf8(after)?,
                None => lines.last().map_or("", |last| last.hash),
            };
            let plain = format!("{body}{BEFORE_HASH}{hash}{AFTER_HASH}");
            lines.push(Part {
                plain,
                before,
                hash,
            });
        }
        Ok(Self { lines })
    }
}

impl Part<'_> {
    fn is_under(&self, key: &Key) -> bool {
        link(self.plain.as_bytes())
            .is_some_and(|link| key.hash(self.before.as_bytes(), &link.body)[..] == *link.hash)
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
    let a = Parts::of(ours).map_err(refused)?;
    let b = Parts::of(theirs).map_err(refused)?;
    // A line under another key cannot be verified here, so the whole log would count as broken.
    for log in [&a, &b] {
        if let Some(first) = log.lines.first()
            && !first.is_under(&key)
        {
            return Err(refused("it belongs to another workspace"));
        }
    }
    let known: std::collections::HashSet<&str> = a.lines.iter().map(|part| part.hash).collect();
    let mut log = ours.to_owned();
    let mut last = a.lines.last().map_or("", |part| part.hash);
    let mut lines = a.lines.len() as u64;
    let mut taken = 0;
    for part in b.lines.iter().filter(|part| !known.contains(part.hash)) {
        log.push_str(&placed(&part.plain, part.before, last));
        last = part.hash;
        lines += 1;
        taken += 1;
    }
    let head = a.lines.last().map_or("", |part| part.hash);
    let end = if let (Some(theirs), true) = (b.lines.last(), taken > 0) {
        let newest = |parts: &Parts<'_>| {
            let times = parts.lines.iter().filter_map(|part| {
                let line: Line = serde_json::from_str(&part.plain).ok()?;
                Some(line.at)
            });
            times.max().unwrap_or_default()
        };
        let line = Line {
            seq: lines + 1,
            at: newest(&a).max(newest(&b)),
            who: who.to_owned(),
            did: AuditAction::Merged,
            records: renamed
                .iter()
                .map(|(from, to)| format!("{from} → {to}"))
                .collect(),
            of: Vec::new(),
            why: format!("git: {taken} lines up to {}", theirs.hash),
        };
        let mut body = serde_json::to_string(&line)?;
        body.pop();
        let hash = text(&key.hash(head.as_bytes(), body.as_bytes()));
        let plain = format!("{body}{BEFORE_HASH}{hash}{AFTER_HASH}");
        log.push_str(&placed(&plain, head, last));
        lines += 1;
        hash
    } else {
        head.to_owned()
    };
    let anchor = Anchor::new(&key, lines, log.len() as u64, end).render()?;
    Ok(Joined { log, anchor })
}

/// Formats a line for its place after the line with the hash `last`.
fn placed(plain: &str, before: &str, last: &str) -> String {
    if before == last {
        return format!("{plain}\n");
    }
    going_on_from(plain, before) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;
    use crate::store::access::scoped::Scoped;
    use crate::store::audit::audit_context::AuditContext;
    use crate::store::files::file_names::{AUDIT_ANCHOR as ANCHOR, AUDIT_LOG as FILE};
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
            for noted in read(&ours).lines().chain(read(&theirs).lines()) {
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
