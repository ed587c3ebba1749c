//! Turns a memory directory into a copy of a memory in the database. Also reads a memory and its changes
//! from the database, and the users for whom it is disabled.
//!
//! If the memory does not exist, it is created from the records of the directory. If it exists, the
//! directory has to be empty; two sets of records are never merged. Users of the directory see no
//! change before the last step, and an interrupted call can be repeated.

use futures_util::TryStreamExt as _;
use serde::Serialize;

use crate::model::{Kind, error};
use crate::remote::address::Address;
use crate::remote::connection::{ANSWER_WITHIN, Connection, Parameter, within};
use crate::remote::error::Error;
use crate::remote::sync::{self, OnSync, SyncReport, claim_for, claimed};
use crate::remote::tables::{Table, is_fit, table};
use crate::store::{
    Fetched, Identity, PrimaryChange, PrimaryName, Scoped, Writer, disabled_users, is_origin,
};

/// Result of [`join`].
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct JoinReport {
    /// Host, port and name.
    pub database: String,
    /// Name of the memory.
    pub memory: String,
    /// `true` if this call created the memory.
    pub created: bool,
    /// Name of the workspace that began the memory.
    #[serde(skip)]
    pub begun_by: String,
    /// Number of records sent to the database.
    pub sent: u64,
    /// Number of records in the memory; the caller fills it in.
    pub records: u64,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// Makes the directory of `store` a copy of the memory `name`. The store needs full access and a
/// redactor; `random` generates names and keys.
pub async fn join(
    address: &Address,
    store: &Scoped,
    name: &str,
    random: &mut dyn FnMut() -> String,
    on: OnSync<'_>,
) -> Result<JoinReport, Error> {
    if !is_origin(name) {
        let message = format!(
            "`{}` cannot be the name of a memory: allowed are up to 64 letters, digits, `.`, `_` and `-`",
            name.escape_debug()
        );
        return Err(Error::input(message, "memctl remote join support"));
    }
    let connection = sync::open(address).await?;
    let place = PrimaryName {
        database: connection.name().await?,
        shown: address.shown(),
        origin: name.to_owned(),
    };
    let mut report = JoinReport {
        database: address.shown(),
        memory: name.to_owned(),
        created: false,
        begun_by: String::new(),
        sent: 0,
        records: 0,
        warnings: Vec::new(),
    };
    if let Some(old) = store.primary_name()? {
        if (&old.database, &old.origin) != (&place.database, &place.origin) {
            let PrimaryName { shown, origin, .. } = old;
            let message = format!("this memory is already stored in `{shown}` as `{origin}`");
            let hint = "memctl remote leave".to_owned();
            return Err(Error::Stopped(error::Kind::Usage, message, hint));
        }
        return Ok(report);
    }
    // Sets the identity before the claim, so that an interrupted call recognises its own claim.
    let (_, replica) = store.name_itself(random)?;
    let moving = store.write(random)?;
    let records = moving.store().record_count()?;
    let there = claimed(&connection, name).await?;
    if there.is_none() {
        let own = &moving.identity().origin;
        let other = claimed(&connection, own).await?;
        if other.is_some_and(|there| there.replica == replica) {
            return Err(Error::input(
                format!("this workspace shares its files as `{own}`"),
                format!("keep the name: memctl remote join {own}"),
            ));
        }
    }
    let (holder, tombstone_key) = match there {
        Some(there) => (there.replica, there.tombstone_key),
        None => (replica.clone(), None),
    };
    let Some(tombstone_key) = tombstone_key else {
        // The replica that pushes under this name may turn it into a memory; so may an interrupted
        // join.
        if replica != holder {
            let message = format!("`{name}` is the name of a workspace that shares its own files");
            return Err(Error::input(message, "choose another name"));
        }
        report.created = true;
        return begin(&connection, moving, place, replica, report, on).await;
    };
    if records > 0 {
        return Err(Error::input(
            format!(
                "`{name}` is there, and this memory has {records} records of its own: nothing was changed"
            ),
            "join from an empty directory: memctl remote join NAME --root NEW_DIRECTORY",
        ));
    }
    let identity = Identity {
        origin: name.to_owned(),
        tombstone_key,
        joined_keys: Vec::new(),
        folders: Vec::new(),
    };
    moving.move_to_primary(&place, &identity, &holder)?;
    report.begun_by = holder;
    Ok(report)
}

/// Returns `true` if the database has a memory of this name for the login.
pub async fn has_memory(address: &Address, name: &str) -> Result<bool, Error> {
    let connection = Connection::open(address).await?;
    let claimed = claimed(&connection, name).await?;
    Ok(claimed.is_some_and(|there| there.tombstone_key.is_some()))
}

/// Sends the local records and creates the memory from them.
async fn begin(
    connection: &Connection,
    moving: Writer,
    place: PrimaryName,
    replica: String,
    mut report: JoinReport,
    on: OnSync<'_>,
) -> Result<JoinReport, Error> {
    let store = moving.store();
    let own = moving.identity().clone();
    let name = &place.origin;
    let doing = "the memory cannot be begun";
    claim_for(connection, name, &replica).await?;
    let mut sent = SyncReport {
        origin: name.clone(),
        ..SyncReport::default()
    };
    sync::push_all(connection, store, &mut sent, on).await?;
    report.sent = sent.pushed;
    report.warnings = sent.warnings;
    send_tombstones(connection, store, name).await?;
    for user in disabled_users(store.directory())? {
        put(connection, name, &user, true).await?;
    }
    let open = "update memctl.origins set tombstone_key = $2
        where user_id = (select memctl.current_user_id()) and origin = $1";
    connection
        .run(doing, open, &[name, &own.tombstone_key])
        .await?;
    let identity = Identity {
        origin: name.clone(),
        ..own
    };
    moving.move_to_primary(&place, &identity, &replica)?;
    Ok(report)
}

/// Sends the tombstones of the local store, so that other copies do not learn removed records again
/// and no id is reused.
async fn send_tombstones(
    connection: &Connection,
    store: &Scoped,
    origin: &str,
) -> Result<(), Error> {
    for kind in Kind::ALL {
        let tombstones = store.tombstone_lines(kind)?;
        let statement = table(kind).insert_tombstones();
        for tombstones in tombstones.chunks(2_000) {
            let fit = || tombstones.iter().filter(|(id, line)| is_fit(id, line));
            let ids: Vec<&str> = fit().map(|(id, _)| id.as_str()).collect();
            let lines: Vec<&str> = fit().map(|(_, line)| line.as_str()).collect();
            let doing = "the tombstones cannot be sent";
            connection
                .run(doing, &statement, &[&origin, &ids, &lines])
                .await?;
        }
    }
    Ok(())
}

/// Disables or enables a memory for a user. The statement counts as a write, so other copies fetch the list.
pub(super) async fn put(
    connection: &Connection,
    origin: &str,
    user: &str,
    is_disabled: bool,
) -> Result<(), Error> {
    let put = "insert into memctl.disabled_users (origin, sub, is_disabled) values ($1, $2, $3)
        on conflict (held_by, origin, sub) do update
          set is_disabled = excluded.is_disabled, changed_at = now()";
    let doing = "the memory of a user cannot be switched";
    let parameters: [&dyn Parameter; 3] = [&origin, &user, &is_disabled];
    connection.run(doing, put, &parameters).await.map(drop)
}

/// Users for whom a memory is disabled.
pub(super) async fn list(connection: &Connection, origin: &str) -> Result<Vec<String>, Error> {
    let users = "select sub from memctl.disabled_users
        where held_by = (select memctl.current_user_id()) and origin = $1 and is_disabled";
    let doing = "users without a memory cannot be listed";
    let rows = connection.rows(doing, users, &[&origin]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Maximum number of rows and of bytes per batch.
const ROWS: usize = 2_000;
const BYTES: usize = 4 << 20;

/// Counter that grows with every write.
pub(super) async fn clock(connection: &Connection) -> Result<i64, Error> {
    let doing = "the shared store does not answer";
    let row = connection.row(doing, "select memctl.clock()", &[]);
    Ok(row.await?.get(0))
}

/// Joins one subquery per kind with `between`.
fn of_each(between: &str, of: impl Fn(usize, Table) -> String) -> String {
    let parts = Kind::ALL.into_iter().enumerate();
    let parts: Vec<String> = parts.map(|(n, kind)| of(n, table(kind))).collect();
    parts.join(between)
}

/// SQL expression for the sequence number of the user's last change.
pub(super) fn last_change() -> String {
    let last = of_each(", ", |_, table| {
        format!("(select max(seq) from {})", table.own())
    });
    format!("coalesce(greatest({last}), 0)")
}

/// SQL expression that is true if a memory (`$1`) has changes after a sequence number (`$2`).
pub(super) fn has_changed() -> String {
    of_each(" or ", |_, table| {
        format!(
            "exists (select from {} and origin = $1 and seq > $2)",
            table.own()
        )
    })
}

/// Passes all changes of a memory after sequence number `after` to `take`, in batches. If `after` is
/// zero, the records come in creation order. The time limit of an answer holds for each row.
pub(super) async fn changes(
    connection: &Connection,
    origin: &str,
    after: i64,
    take: &mut dyn FnMut(Vec<PrimaryChange>) -> Result<(), Error>,
) -> Result<Fetched, Error> {
    let doing = "the memory cannot be fetched";
    let until = format!("select {}", last_change());
    // One round trip for both.
    let both =
        async { tokio::try_join!(connection.row(doing, &until, &[]), list(connection, origin)) };
    let (until, disabled_users) = within(ANSWER_WITHIN, both).await?;
    let until: i64 = until.get(0);
    let union = of_each(" union all ", |n, table| {
        format!(
            "select {n}, seq, born, entry_id, entry, tombstone,
                    to_char(deleted_at at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"+00:00\"')
             from {} and origin = $1 and seq > $2 and seq <= $3",
            table.own()
        )
    });
    let order = if after == 0 { 3 } else { 2 };
    let query = format!("{union} order by 1, {order}");
    let parameters: [&dyn Parameter; 3] = [&origin, &after, &until];
    let rows = connection.stream(doing, &query, &parameters);
    let mut rows = within(ANSWER_WITHIN, rows).await?;
    let mut batch = Vec::new();
    let mut bytes = 0;
    while let Some(row) = within(ANSWER_WITHIN, rows.try_next()).await? {
        let number = usize::try_from(row.get::<_, i32>(0)).unwrap_or(usize::MAX);
        let Some(kind) = Kind::ALL.get(number).copied() else {
            continue;
        };
        let text: Option<String> = row.get(4);
        bytes += text.as_ref().map_or(0, String::len);
        batch.push(PrimaryChange {
            kind,
            id: row.get(3),
            text,
            tombstone: row.get(5),
            gone_at: row.get(6),
        });
        if batch.len() >= ROWS || bytes >= BYTES {
            bytes = 0;
            take(std::mem::take(&mut batch))?;
        }
    }
    if !batch.is_empty() {
        take(batch)?;
    }
    Ok(Fetched {
        seq: until,
        disabled_users,
    })
}
