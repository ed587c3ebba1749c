//! Group commit: requests of one process that add executions share a write.
//!
//! A request that finds no leader becomes the leader. It opens the writer, adds all that waits, and
//! answers. Requests that arrive meanwhile form the next group, so a group is as large as the disk
//! or the database is slow, and a lone request never waits.
//!
//! Invariant: an answer is given after the write, as for a writer of one's own. If a write fails,
//! its whole group fails.
//!
//! Deliberately absent: edits and removals. They depend on what they read, and take the lock alone.

use std::sync::mpsc::{self, SyncSender, TryRecvError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};

use crate::model::{Execution, Kind};
use crate::store::writer::append::Addition;
use crate::store::{Error, Problem, Scoped};

/// Maximum number of additions in one write.
const LARGEST: usize = 256;

/// Requests of one process for the same memory.
#[derive(Default)]
pub struct GroupCommit {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Waiting>,
    is_led: bool,
    /// Number of groups.
    #[cfg(test)]
    commits: u32,
}

impl std::fmt::Debug for GroupCommit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GroupCommit").finish_non_exhaustive()
    }
}

/// Execution that was added.
#[derive(Debug)]
pub struct Added {
    /// The execution as stored.
    pub execution: Execution,
    /// Kinds of secrets redacted from it.
    pub left_out: Vec<&'static str>,
    /// Crash damage that its writer has repaired.
    pub repairs: Vec<Problem>,
}

/// Addition that waits for its write, and then for its caller.
struct Waiting {
    addition: Addition,
    reply: SyncSender<Result<(Addition, Vec<Problem>), Error>>,
}

impl GroupCommit {
    /// Adds an execution for the caller of `store`, in one write with those of other requests.
    pub fn add(
        &self,
        store: &Scoped,
        execution: &Execution,
        now: DateTime<Utc>,
        random: fn() -> String,
    ) -> Result<Added, Error> {
        // Checked first, so that a refusal waits for nobody.
        let addition = Addition::of(store.held(), execution, now)?;
        let (reply, answer) = mpsc::sync_channel(1);
        let mut queue = self.queue();
        queue.waiting.push(Waiting { addition, reply });
        loop {
            match answer.try_recv() {
                Ok(answer) => {
                    let (mut addition, repairs) = answer?;
                    return Ok(Added {
                        left_out: std::mem::take(&mut addition.left_out),
                        execution: addition.stored()?,
                        repairs,
                    });
                }
                Err(TryRecvError::Disconnected) => return Err(Error::Abandoned),
                Err(TryRecvError::Empty) => {}
            }
            if queue.is_led {
                let waited = self.changed.wait(queue);
                queue = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            queue.is_led = true;
            #[cfg(test)]
            count_commit(&mut queue);
            let length = queue.waiting.len().min(LARGEST);
            let requests: Vec<_> = queue.waiting.drain(..length).collect();
            drop(queue);
            let leader = Leader(self);
            commit(store, requests, random);
            drop(leader);
            queue = self.queue();
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
fn count_commit(queue: &mut Queue) {
    queue.commits += 1;
}

/// Lets the next request lead, even after a panic.
struct Leader<'a>(&'a GroupCommit);

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        self.0.queue().is_led = false;
        self.0.changed.notify_all();
    }
}

/// Writes the requests in one write, and answers them.
fn commit(store: &Scoped, mut requests: Vec<Waiting>, random: fn() -> String) {
    let done = store.write(&mut || random()).and_then(|mut writer| {
        let additions = requests.iter_mut().map(|request| &mut request.addition);
        writer.append_each(Kind::Execution, &mut additions.collect::<Vec<_>>())?;
        Ok(writer.take_repairs())
    });
    let mut done = done.map_err(Arc::new);
    for Waiting { addition, reply } in requests {
        let answer = match &mut done {
            // One of them reports what was repaired.
            Ok(repairs) => Ok((addition, std::mem::take(repairs))),
            Err(error) => Err(Error::Group(Arc::clone(error))),
        };
        // A caller that is gone needs no answer.
        drop(reply.send(answer));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Barrier;
    use std::time::Duration;
    use std::{fs, thread};

    use chrono::TimeDelta;

    use crate::model::{Scope, Viewer};
    use crate::store::files::directory::Lock;
    use crate::store::trust::Approvals;
    use crate::store::{AuditContext, Selection};
    use memctl_files::Directory;

    use super::*;

    fn now() -> DateTime<Utc> {
        "2026-01-01T00:00:10Z".parse().unwrap()
    }

    fn random() -> String {
        "0123456789abcdef".to_owned()
    }

    fn execution(skill: &str) -> Execution {
        let json = format!(
            r#"{{"execution_id": "", "skill": "{skill}", "timestamp": "2026-01-01T00:00:10+00:00",
            "input_summary": {{}}, "output_summary": {{}}, "outcome": "accepted"}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    /// Store of a user, whose change has this name.
    fn store(directory: &std::path::Path, user: usize) -> Scoped {
        Scoped::new(directory, Scope::All)
            .with_lock_limit(Duration::from_secs(5))
            .trusting(Approvals::default())
            .acting(AuditContext {
                who: format!("user-{user}"),
                why: "test".to_owned(),
                at: "2026-01-01T00:00:10Z".to_owned(),
                change: format!("change-{user}"),
            })
    }

    /// Runs `work` on as many threads, which begin together.
    fn at_once<T: Send>(threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
        let barrier = Barrier::new(threads);
        thread::scope(|scope| {
            let running: Vec<_> = (0..threads)
                .map(|n| {
                    let (work, barrier) = (&work, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        work(n)
                    })
                })
                .collect();
            running.into_iter().map(|t| t.join().unwrap()).collect()
        })
    }

    #[test]
    fn every_record_of_a_group_is_stored_once_for_its_own_caller() {
        const THREADS: usize = 12;
        const EACH: usize = 10;
        let dir = tempfile::tempdir().unwrap();
        let group = GroupCommit::default();
        let ids = at_once(THREADS, |n| {
            let store = store(dir.path(), n);
            let add = |round: usize| {
                // The clocks of requests differ by a second.
                let now = now() - TimeDelta::seconds(i64::try_from((n + round) % 2).unwrap());
                let added = group.add(&store, &execution("hr/screen"), now, random);
                added.unwrap().execution.execution_id
            };
            (0..EACH).map(add).collect::<Vec<_>>()
        });
        let given: BTreeSet<String> = ids.iter().flatten().cloned().collect();
        assert_eq!(given.len(), THREADS * EACH);
        let all = store(dir.path(), 0);
        let stored = all.list::<Execution>(&Selection::default()).unwrap();
        let stored: BTreeSet<String> = stored.records.into_iter().map(|r| r.execution_id).collect();
        assert_eq!(stored, given);
        // Each audit event names the caller of its record.
        let mut events = Vec::new();
        all.audited(&mut |line| events.push(line)).unwrap();
        events.retain(|line| !line.records.is_empty());
        assert_eq!(events.len(), THREADS * EACH);
        for event in &events {
            let caller: usize = event.who.strip_prefix("user-").unwrap().parse().unwrap();
            assert!(ids[caller].contains(&event.records[0]), "{event:?}");
        }
        assert_eq!(all.verify_audit(None).unwrap().flaws, []);
        // So does each line of the journal.
        let journal = fs::read_to_string(dir.path().join("changes.jsonl")).unwrap();
        assert_eq!(journal.lines().count(), THREADS * EACH);
        for (n, ids) in ids.iter().enumerate() {
            let own = journal
                .lines()
                .filter(|line| line.contains(&format!("\"change-{n}\"")));
            assert!(
                own.clone().count() == EACH
                    && own
                        .clone()
                        .all(|line| ids.iter().any(|id| line.contains(&format!("\"{id}\""))))
            );
        }
    }

    #[test]
    fn waiting_requests_are_written_together() {
        let dir = tempfile::tempdir().unwrap();
        let group = GroupCommit::default();
        let first = store(dir.path(), 0);
        group
            .add(&first, &execution("hr/screen"), now(), random)
            .unwrap();
        let lock = Lock::take(dir.path(), Duration::from_secs(1)).unwrap();
        thread::scope(|scope| {
            let add = |n| {
                let group = &group;
                let store = store(dir.path(), n);
                scope.spawn(move || {
                    group
                        .add(&store, &execution("hr/screen"), now(), random)
                        .unwrap();
                });
            };
            add(1);
            // The leader waits for the lock, and the others for the leader.
            while !group.queue().is_led {
                thread::yield_now();
            }
            (2..8).for_each(add);
            while group.queue().waiting.len() < 6 {
                thread::yield_now();
            }
            drop(lock);
        });
        let all = first.list::<Execution>(&Selection::default()).unwrap();
        assert_eq!((all.records.len(), group.queue().commits), (8, 3));
        assert!(!group.queue().is_led && group.queue().waiting.is_empty());
    }

    #[test]
    fn a_refused_record_hinders_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let group = GroupCommit::default();
        let scope = Scope::parse("hr");
        let narrow = Scoped::new(dir.path(), scope).seen_by(Viewer::Owner);
        let refused = group.add(&narrow, &execution("law/review"), now(), random);
        assert!(matches!(refused, Err(Error::OutOfScope(..))));
        let added = group.add(&narrow, &execution("hr/screen"), now(), random);
        drop(added.unwrap());
    }

    #[test]
    fn a_failed_write_fails_for_everybody_and_the_next_one_succeeds() {
        let dir = tempfile::tempdir().unwrap();
        let group = GroupCommit::default();
        let lock = Lock::take(dir.path(), Duration::from_secs(1)).unwrap();
        let results = at_once(5, |n| {
            let store = store(dir.path(), n).with_lock_limit(Duration::from_millis(30));
            group.add(&store, &execution("hr/screen"), now(), random)
        });
        for result in results {
            let Err(Error::Group(error)) = result else {
                panic!("{result:?}");
            };
            assert!(matches!(*error, Error::Locked { .. }), "{error}");
        }
        drop(lock);
        let store = store(dir.path(), 0);
        group
            .add(&store, &execution("hr/screen"), now(), random)
            .unwrap();
    }

    #[test]
    fn a_panic_lets_the_next_one_lead() {
        let dir = tempfile::tempdir().unwrap();
        let group = GroupCommit::default();
        let store = store(dir.path(), 0);
        group
            .add(&store, &execution("hr/screen"), now(), random)
            .unwrap();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            drop(group.add(&store, &execution("hr/screen"), now(), || {
                panic!("on purpose")
            }));
        }));
        assert!(panicked.is_err());
        group
            .add(&store, &execution("hr/screen"), now(), random)
            .unwrap();
        assert!(
            Lock::take(Directory::at(dir.path()), Duration::from_secs(1)).is_ok(),
            "the lock is free"
        );
    }
}
