//! Statements that store the records of a kind.

use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Statement};

use crate::model::Kind;

use super::push_batch::Batch;
use super::tables::{RowUser, table};

/// Prepared statements for batches of one kind.
pub(super) struct Statements {
    upsert: Statement,
    /// Faster than `upsert`, and fails if a row is there; `None` if rows are expected.
    insert: Option<Statement>,
    /// Number of parameters of both.
    parameters: usize,
}

impl Statements {
    /// `is_first`: no record of this workspace is there.
    pub(super) async fn prepare(
        client: &Client,
        kind: Kind,
        user: RowUser,
        is_first: bool,
    ) -> Result<Self, Error> {
        let table = table(kind);
        let insert = if is_first {
            Some(client.prepare(&table.insert(user)).await?)
        } else {
            None
        };
        Ok(Self {
            upsert: client.prepare(&table.upsert(user)).await?,
            insert,
            parameters: table.parameters(),
        })
    }

    /// Stores a batch in a transaction of its own.
    pub(super) async fn store(
        &self,
        client: &Client,
        origin: &str,
        batch: &Batch,
    ) -> Result<(), Error> {
        let Batch {
            ids,
            skills,
            texts,
            fields,
            ..
        } = batch;
        let all: [&(dyn ToSql + Sync); 5] = [&origin, ids, skills, texts, fields];
        let parameters = &all[..self.parameters];
        if let Some(insert) = &self.insert {
            match client.execute(insert, parameters).await {
                // An id is in two batches, or the database still stores those of a sync that was cut
                // off.
                Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {}
                done => return done.map(drop),
            }
        }
        client.execute(&self.upsert, parameters).await.map(drop)
    }
}
