//! Lists records, and shows one as it stands in its file.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::model::{Document, Execution, Kind, Memory, MemoryType, SkillPath, Trust};
use crate::store::{Entry, Error as StoreError, Selection};

use super::find::document;
use super::remember::misfits;
use super::{Engine, Error};

/// Records of one kind.
#[derive(Debug, Serialize)]
pub struct ListReport {
    /// The kind.
    pub kind: Kind,
    /// How many the scope sees.
    pub total: u64,
    /// The newest of them, newest first.
    pub records: Vec<Listed>,
    /// What went wrong and did not stop it.
    pub warnings: Vec<String>,
}

/// One record in a list.
#[derive(Debug, Serialize)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// The skill that it belongs to.
    pub skill: Option<String>,
    /// When it was made.
    pub created: String,
    /// Its words, on one line.
    pub summary: String,
    /// Which type of memory it is, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_type: Option<MemoryType>,
    /// Whose it is, of the kinds that have a user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// When it ends, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// How far it may be believed; `None` where it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
    /// Of a rule or a fix: how it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Who brought it, where the record says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl Listed {
    /// An entry in a list. Of one that cannot be read there is only the id.
    pub(super) fn of(entry: Entry) -> Self {
        let document = document(&entry);
        let field = |of: fn(Document) -> Option<String>| document.clone().and_then(of);
        Self {
            skill: field(|d| d.skill),
            created: field(|d| Some(d.created)).unwrap_or_default(),
            summary: field(|d| Some(d.summary)).unwrap_or_default(),
            memory_type: document.as_ref().and_then(|d| d.memory_type),
            user_id: field(|d| d.user_id),
            expires_at: field(|d| d.expires),
            trust: document.as_ref().map(|d| d.trust),
            status: field(|d| d.status),
            source: field(|d| d.source),
            id: entry.id,
        }
    }
}

/// One record.
#[derive(Debug, Serialize)]
pub struct ShowReport {
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: Kind,
    /// How far it may be believed; `None` where it cannot be read.
    pub trust: Option<Trust>,
    /// Of a rule or a fix: how it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Who brought it, where the record says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The entry of its file, untouched.
    pub record: Box<RawValue>,
    /// What in it does not fit its type (hands and other programs write too), and what went wrong and
    /// did not stop it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Engine {
    /// The newest records of a kind.
    pub fn list(
        &self,
        kind: Kind,
        skill: Option<&SkillPath>,
        limit: usize,
    ) -> Result<ListReport, Error> {
        let selection = Selection {
            skill,
            newest: Some(limit),
        };
        let mut records = Vec::new();
        let problems = self.store.each_entry(kind, &selection, &mut |entry| {
            records.push(Listed::of(entry));
        })?;
        records.reverse();
        let read = records.iter().map(|record| {
            let touched = (record.id.as_str(), record.user_id.as_deref());
            (kind, touched)
        });
        let unnoted = self.note_read(read);
        let warnings = problems.iter().map(ToString::to_string).chain(unnoted);
        Ok(ListReport {
            kind,
            total: self.store.count(kind)?,
            warnings: warnings.collect(),
            records,
        })
    }

    /// One record, by its id or the beginning of one.
    pub fn show(&self, id: &str) -> Result<ShowReport, Error> {
        let (kind, id) = self.locate(id)?;
        let entry = self
            .store
            .find(kind, &id)?
            .ok_or_else(|| StoreError::NotFound {
                kind: Some(kind),
                id: id.clone(),
                similar: Vec::new(),
            })?;
        let record = serde_json::from_slice(&entry.text).or_else(|_| {
            // An entry that only its author's parser reads is shown as text.
            serde_json::value::to_raw_value(&String::from_utf8_lossy(&entry.text))
        });
        let memory = (kind == Kind::Memory).then(|| entry.parse::<Memory>().ok());
        let misfits = memory
            .flatten()
            .map(|m| misfits(m.memory_type, &m.metadata));
        let unnoted = self.note_read([(kind, (id.as_str(), entry.user_id().as_deref()))]);
        let document = document(&entry);
        Ok(ShowReport {
            id,
            kind,
            trust: document.as_ref().map(|d| d.trust),
            status: document.as_ref().and_then(|d| d.status.clone()),
            source: document.and_then(|d| d.source),
            record: record.map_err(StoreError::from)?,
            warnings: misfits
                .unwrap_or_default()
                .into_iter()
                .chain(unnoted)
                .collect(),
        })
    }

    /// The record that a person means by an id, the beginning of one, or `latest`. One that was
    /// forgotten is said to be.
    pub(super) fn locate(&self, id: &str) -> Result<(Kind, String), Error> {
        let kind = match Kind::of_id(id) {
            Some(kind) => kind,
            None if id == "latest" => Kind::Execution,
            None => return Err(Error::NoId(id.to_owned())),
        };
        Ok((kind, self.locate_as(kind, id)?))
    }

    /// The same among the records of one kind.
    pub(super) fn locate_as(&self, kind: Kind, id: &str) -> Result<String, Error> {
        match self.store.resolve(kind, id, None) {
            Ok(id) => Ok(id),
            Err(error @ StoreError::NotFound { .. }) => {
                Err(match self.store.tombstone(kind, id)? {
                    Some(tombstone) => Error::Forgotten {
                        day: tombstone
                            .at
                            .split('T')
                            .next()
                            .unwrap_or_default()
                            .to_owned(),
                        id: tombstone.id,
                        kind,
                    },
                    None => error.into(),
                })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The newest executions, oldest first, and how many there are.
    pub fn recent_executions(
        &self,
        skill: Option<&SkillPath>,
        limit: usize,
    ) -> Result<(Vec<Execution>, u64), Error> {
        let selection = Selection {
            skill,
            newest: Some(limit),
        };
        let executions = self.store.list::<Execution>(&selection)?.records;
        Ok((executions, self.store.count(Kind::Execution)?))
    }
}
