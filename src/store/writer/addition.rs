//! Record to add, with its caller and what became of it.

use chrono::{DateTime, Utc};

use crate::model::{Kind, Record, Trust};
use crate::store::access::scoped::Scoped;
use crate::store::error::Error;
use crate::store::files::data::offsets::Header;
use crate::store::files::data_files::DataFile;
use crate::store::redaction::redact;
use memctl_files::json;

/// Record to add, of any type.
pub(crate) trait Addition {
    fn kind(&self) -> Kind;
    /// Returns the file that it is added to.
    fn file(&self) -> DataFile;
    /// Returns the store of the caller, with their access and audit context.
    fn store(&self) -> &Scoped;
    /// Returns the id; empty until one is assigned.
    fn id(&self) -> &str;
    /// Returns `true` if the caller has chosen the id.
    fn is_numbered(&self) -> bool;
    fn number(&mut self, id: String);
    fn skill(&self) -> &str;
    fn user_id(&self) -> Option<&str>;
    fn now(&self) -> DateTime<Utc>;
    /// Returns `true` if the record counts as this user's own word.
    fn is_own_word(&self) -> bool;
    /// Returns the text for the file, and leaves the record as it is stored.
    fn text(&mut self) -> Result<String, Error>;
    /// Returns `true` if an entry says the same, so that nothing is to be added.
    fn repeats(&self, entry: &[u8]) -> bool;
    /// Position up to which the caller knows that no entry says the same.
    fn compared(&self) -> Option<Compared>;
    fn state(&mut self) -> &mut State;
}

/// Progress of an addition.
#[derive(Debug, Default)]
pub(crate) enum State {
    #[default]
    Waiting,
    /// The text was written and then not found, because another program saved the file.
    Unsure(String),
    Refused(Error),
    Repeated,
}

/// State of a file at which it was searched for an entry that says the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compared {
    generation: u64,
    end: u64,
}

impl Compared {
    pub(super) fn of(header: &Header) -> Self {
        Self {
            generation: header.generation,
            end: header.tail,
        }
    }

    /// Returns the position behind which entries came until `now`; `None` if the file was replaced.
    pub(super) fn until(self, now: Self) -> Option<u64> {
        let is_longer = self.generation == now.generation && self.end <= now.end;
        is_longer.then_some(self.end)
    }
}

/// Returns `true` for the JSON text of an entry that says the same.
pub type Repeats = dyn Fn(&[u8]) -> bool + Send;

/// Condition on which a record is not added.
pub struct SkipCondition {
    /// State of the file in which no entry said the same.
    pub compared: Compared,
    /// Comparison with the record.
    pub repeats: Box<Repeats>,
}

/// Record of one type to add.
pub(crate) struct New<R> {
    pub(crate) record: R,
    pub(crate) state: State,
    /// Kinds of secrets redacted from it.
    pub(crate) left_out: Vec<&'static str>,
    file: DataFile,
    store: Scoped,
    unless: Option<SkipCondition>,
    is_numbered: bool,
    now: DateTime<Utc>,
}

impl<R: Record> New<R> {
    /// Checks that the caller of `store` may add the record.
    pub(crate) fn of(
        store: Scoped,
        mut record: R,
        now: DateTime<Utc>,
        unless: Option<SkipCondition>,
    ) -> Result<Self, Error> {
        if !store.access().covers_skill(R::KIND, record.skill()) {
            let what = record.skill().unwrap_or(R::KIND.name()).to_owned();
            return Err(Error::OutOfScope { what });
        }
        claim(&store, &mut record)?;
        let text = serde_json::to_vec(&record)?;
        Ok(Self {
            file: DataFile::for_record(R::KIND, &text),
            is_numbered: !record.id().is_empty(),
            record,
            state: State::default(),
            left_out: Vec::new(),
            store,
            unless,
            now,
        })
    }
}

impl<R: Record> Addition for New<R> {
    fn kind(&self) -> Kind {
        R::KIND
    }

    fn file(&self) -> DataFile {
        self.file
    }

    fn store(&self) -> &Scoped {
        &self.store
    }

    fn id(&self) -> &str {
        self.record.id()
    }

    fn is_numbered(&self) -> bool {
        self.is_numbered
    }

    fn number(&mut self, id: String) {
        self.record.set_id(id);
    }

    fn skill(&self) -> &str {
        self.record.skill().unwrap_or_default()
    }

    fn user_id(&self) -> Option<&str> {
        self.record.user_id()
    }

    fn now(&self) -> DateTime<Utc> {
        self.now
    }

    fn is_own_word(&self) -> bool {
        self.record.trust() != Trust::Observed
    }

    fn text(&mut self) -> Result<String, Error> {
        let text = serde_json::to_string(&self.record)?;
        let redacted = redact(&text);
        if !redacted.found.is_empty() {
            self.record = serde_json::from_str(&redacted.text)?;
            claim(&self.store, &mut self.record)?;
        }
        let text = json::pretty(&redacted.text, 2);
        self.left_out.extend(redacted.found);
        Ok(text)
    }

    fn repeats(&self, entry: &[u8]) -> bool {
        let unless = self.unless.as_ref();
        unless.is_some_and(|unless| (unless.repeats)(entry))
    }

    fn compared(&self) -> Option<Compared> {
        self.unless.as_ref().map(|unless| unless.compared)
    }

    fn state(&mut self) -> &mut State {
        &mut self.state
    }
}

/// Assigns a record to the viewer. Fails if it belongs to another user.
fn claim<R: Record>(store: &Scoped, record: &mut R) -> Result<(), Error> {
    let viewer = store.viewer();
    if R::KIND.has_user()
        && let Some(own) = viewer.user_id().filter(|_| record.user_id().is_none())
    {
        record.set_user_id(own);
    }
    if R::KIND.has_user() && !viewer.sees(record.user_id()) {
        let what = record.user_id().unwrap_or(R::KIND.name()).to_owned();
        return Err(Error::OutOfScope { what });
    }
    Ok(())
}
