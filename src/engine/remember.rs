//! Adds a typed memory.
//!
//! What does not fit is told at once and as a whole, and then nothing is written. The same memory said
//! again is one memory: it is answered with its id, and is kept for as long as if it had been said for
//! the first time now. What a person adds is added, also when the same was removed before; that is
//! told.
//!
//! What an agent adds counts as observed until a person approves it, or says it too: it is screened
//! like the output of a tool, and what was forgotten on purpose does not come back by it.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::guard;
use crate::model::{Kind, Memory, MemoryType, Record as _, Trust, ending, later};
use crate::store::{Selection, Writer, compact};

use super::door::kept_out;
use super::import::OBSERVED;
use super::learn::raw;
use super::{Engine, Error, mended};

/// What is to be remembered.
#[derive(Debug)]
pub struct AddOptions {
    /// Its type.
    pub memory_type: MemoryType,
    /// What it says.
    pub content: String,
    /// Its metadata, as JSON; `None` is an empty object, and then what is missing in it is only told:
    /// the source document's own clients write memories without any.
    pub metadata: Option<Box<RawValue>>,
    /// When it ends: a time, a date, a span from now on such as `30d`, or `never`. `None` is what its
    /// type says.
    pub expires_at: Option<String>,
}

/// What is remembered.
#[derive(Debug, Serialize)]
pub struct AddReport {
    /// Its id.
    pub id: String,
    /// Its type.
    pub memory_type: MemoryType,
    /// Whose it is; `None` where it is the owner's.
    pub user_id: Option<String>,
    /// When it ends: RFC 3339, UTC; `None` is never.
    pub expires_at: Option<String>,
    /// Whether it is new; else the same was remembered already.
    pub added: bool,
    /// What went wrong and did not stop it, and what is odd about it.
    pub warnings: Vec<String>,
}

impl Engine {
    /// Adds a typed memory that a person has said.
    pub fn add_memory(&self, options: &AddOptions) -> Result<AddReport, Error> {
        self.add(options, Trust::User)
    }

    /// Adds a typed memory that an agent has said, and no person.
    pub fn add_observed(&self, options: &AddOptions) -> Result<AddReport, Error> {
        let metadata = options.metadata.as_ref().map_or("", |json| json.get());
        let admitted = guard::admit(&options.content);
        let of_metadata = || guard::admit(metadata).quarantine;
        if let Some(reason) = admitted.quarantine.or_else(of_metadata) {
            return Err(Error::Suspicious { reason });
        }
        // What was shown to the agent is not to be learnt from it again.
        let content = guard::visible(&guard::strip_fenced(&options.content)).into_owned();
        let buried = self.store.buried(Kind::Memory, admitted.text.trim_end())?;
        if let Some(removed) = buried {
            return Err(Error::Forgotten {
                day: removed.at.split('T').next().unwrap_or_default().to_owned(),
                id: removed.id,
                kind: Kind::Memory,
            });
        }
        let options = AddOptions {
            memory_type: options.memory_type,
            content,
            metadata: options.metadata.clone(),
            expires_at: options.expires_at.clone(),
        };
        self.add(&options, Trust::Observed)
    }

    fn add(&self, options: &AddOptions, trust: Trust) -> Result<AddReport, Error> {
        let memory_type = options.memory_type;
        let mut problems = Vec::new();
        // Others' programs may end a text with a line break; it says nothing.
        let content = options.content.trim_end();
        if guard::says_nothing(&guard::redact(content).text) {
            problems.push("`content` is empty, and must say something".to_owned());
        }
        let metadata = options.metadata.clone();
        let metadata = metadata.map_or_else(|| RawValue::from_string("{}".to_owned()), Ok);
        let metadata = metadata.map_err(crate::store::Error::from)?;
        let mut warnings = Vec::new();
        if options.metadata.is_some() {
            problems.extend(misfits(memory_type, &metadata));
        } else if trust == Trust::User {
            warnings.extend(misfits(memory_type, &metadata));
        }
        let end = match &options.expires_at {
            Some(given) => ending(given, self.now).unwrap_or_else(|reason| {
                problems.push(format!("`expires_at` is `{given}`: {reason}"));
                None
            }),
            None => self.usual_end(memory_type),
        };
        if !problems.is_empty() {
            return Err(Error::BadMemory {
                memory_type,
                problems,
            });
        }
        warnings.extend(odd_names(memory_type, &metadata));
        let mut writer = self.writer()?;
        let new = Memory {
            id: String::new(),
            user_id: self.store.viewer().user_id().map(str::to_owned),
            memory_type,
            content: content.to_owned(),
            trust: match trust {
                Trust::User => String::new(),
                Trust::Approved => "approved".to_owned(),
                Trust::Observed => OBSERVED.to_owned(),
            },
            metadata,
            created_at: self.timestamp(),
            updated_at: self.timestamp(),
            expires_at: end.map(timestamp),
        };
        let (memory, added) = match same(&writer, &new, &mut warnings)? {
            Some(same) => {
                if same.trust() < trust {
                    let is_said = [("trust", raw(&"user")?)];
                    writer.update(Kind::Memory, &same.id, &is_said)?;
                }
                if trust == Trust::User {
                    writer.vouch(Kind::Memory, &same.id)?;
                }
                let is_asked = options.expires_at.is_some();
                (
                    self.say_again(&mut writer, same, new.expires_at, is_asked)?,
                    false,
                )
            }
            None => (writer.append(new, self.now)?, true),
        };
        warnings.extend(mended(writer.take_mended()));
        warnings.extend(kept_out(writer.take_left_out()));
        Ok(AddReport {
            id: memory.id,
            memory_type,
            user_id: memory.user_id,
            expires_at: memory.expires_at,
            added,
            warnings,
        })
    }

    /// When a memory ends where nobody says so.
    fn usual_end(&self, memory_type: MemoryType) -> Option<DateTime<Utc>> {
        let days = i64::from(self.settings.task_days);
        let ends = memory_type == MemoryType::TaskMemory && days > 0;
        // What ends after the last day of the calendar does not end.
        ends.then(|| later(self.now, TimeDelta::try_days(days)?))
            .flatten()
    }

    /// Moves the end of a memory that is said again: to the one that is asked for, or else to the later
    /// one.
    fn say_again(
        &self,
        writer: &mut Writer,
        mut memory: Memory,
        end: Option<String>,
        is_asked: bool,
    ) -> Result<Memory, Error> {
        // Both are written in one form, in which later is greater.
        let is_later = match (&memory.expires_at, &end) {
            (Some(before), Some(end)) => end > before,
            (before, None) => before.is_some(),
            (None, Some(_)) => false,
        };
        if is_later || (is_asked && memory.expires_at != end) {
            let changes = [
                ("expires_at", raw(&end)?),
                ("updated_at", raw(&self.timestamp())?),
            ];
            writer.update(Kind::Memory, &memory.id, &changes)?;
            memory.expires_at = end;
        }
        Ok(memory)
    }
}

/// The memory that says exactly the same already. What says it with other metadata, or said it
/// before it was removed, is told.
fn same(
    writer: &Writer,
    new: &Memory,
    warnings: &mut Vec<String>,
) -> Result<Option<Memory>, Error> {
    let content = guard::redact(&new.content).text;
    let metadata = compact(&guard::redact_json(new.metadata.get()).text);
    let known = writer
        .store()
        .list::<Memory>(&Selection::default())?
        .records;
    let alike = known.into_iter().filter(|known| {
        known.content == content
            && known.memory_type == new.memory_type
            && known.user_id == new.user_id
    });
    let mut other = None;
    for known in alike {
        if compact(known.metadata.get()) == metadata {
            warnings.push(format!("`{}` says the same already", known.id));
            return Ok(Some(known));
        }
        other = Some(known.id);
    }
    if let Some(id) = other {
        warnings.push(format!(
            "`{id}` says the same with other metadata: memctl memory edit {id}"
        ));
    } else if let Some(removed) = writer.store().buried(Kind::Memory, &content)? {
        let day = removed.at.split('T').next().unwrap_or_default();
        let id = &removed.id;
        warnings.push(format!("the same was removed on {day}, as `{id}`"));
    }
    Ok(None)
}

/// A time as memories carry it.
pub(super) fn timestamp(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
}

/// What does not fit in metadata, in words. A secret that stands there is not repeated.
pub(super) fn misfits(memory_type: MemoryType, metadata: &RawValue) -> Vec<String> {
    let misfits = memory_type.check(metadata).into_iter();
    misfits
        .map(|misfit| guard::redact(&misfit.to_string()).text.into_owned())
        .collect()
}

/// What in metadata may be a mistyped name.
pub(super) fn odd_names(
    memory_type: MemoryType,
    metadata: &RawValue,
) -> impl Iterator<Item = String> {
    let odd = memory_type.mistyped(metadata).into_iter();
    odd.map(move |(name, meant)| {
        let name = guard::redact(&name).text.into_owned();
        format!(
            "`metadata.{name}` is no field of {} and is kept as it is; did you mean `{meant}`?",
            memory_type.name()
        )
    })
}
