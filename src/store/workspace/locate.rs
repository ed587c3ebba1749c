//! The record that an id, an id prefix or `latest` means.

use crate::model::Kind;
use crate::store::{Error as StoreError, Scoped};

use super::Error;

/// Resolves an id, an id prefix or `latest` to a record. Fails with [`Error::Forgotten`] for a
/// deleted record.
pub(crate) fn locate(store: &Scoped, id: &str) -> Result<(Kind, String), Error> {
    let kind = match Kind::of_id(id) {
        Some(kind) => kind,
        None if id == "latest" => Kind::Execution,
        None => return Err(Error::NoId(id.to_owned())),
    };
    Ok((kind, locate_as(store, kind, id)?))
}

/// Resolves an id, an id prefix or `latest` among the records of one kind. Fails with
/// [`Error::Forgotten`] for a deleted record.
pub(crate) fn locate_as(store: &Scoped, kind: Kind, id: &str) -> Result<String, Error> {
    match store.resolve(kind, id, None) {
        Ok(id) => Ok(id),
        Err(error @ StoreError::NotFound { .. }) => Err(match store.tombstone(kind, id)? {
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
        }),
        Err(error) => Err(error.into()),
    }
}
