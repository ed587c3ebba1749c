//! Lookup of the session that holds a lock.
//!
//! Any login can hold a lock on tables that it may write to, or the advisory lock of `init`, for
//! any time. So every wait has a limit, and the error names the other session.
//!
//! Deliberately absent: retries. Only the caller knows if an operation may run twice.
//!
//! Removals that a plan would make, and the share that needs consent.
//!
//! Removal of expired rows from the shared store.
//!
//! A user's expired rows become tombstones, so that every workspace that pulled them removes them
//! too. Rows that other programs wrote are deleted. An administrator owns no rows and removes those
//! of all users, as `pg_cron` does.

use serde::Serialize;

use crate::remote::address::Address;
use crate::remote::connection::Connection;
use crate::remote::error::{Error, Holder};
use crate::remote::migrate;

/// Key of the advisory lock of `init`, as an SQL expression.
pub(super) const INIT_LOCK: &str = "hashtext('memctl remote init')";

/// Runs `work` and adds the lock holder to an [`Error::Locked`], if the server reveals it.
pub(super) async fn named<T>(
    address: &Address,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    match Box::pin(work).await {
        Err(error) => Err(name_holder(address, error, false).await),
        done => done,
    }
}

/// Adds the lock holder to an [`Error::Locked`]. `is_strong` also considers weak lock modes, for
/// operations that need an exclusive lock on a table.
pub(super) async fn name_holder(address: &Address, error: Error, is_strong: bool) -> Error {
    let Error::Locked {
        doing,
        holder: None,
    } = error
    else {
        return error;
    };
    let holder = holder(address, is_strong).await.ok().flatten();
    Error::Locked { doing, holder }
}

async fn holder(address: &Address, is_strong: bool) -> Result<Option<Holder>, Error> {
    let connection = Connection::open(address).await?;
    let failed = connection.failed("locks cannot be looked at");
    // Every role may read these two views; they hide the statements of other sessions.
    let query = format!(
        "select a.usename::text, a.pid, coalesce('`' || n.nspname || '.' || c.relname || '`', l.locktype), l.mode
         from pg_catalog.pg_locks l
         join pg_catalog.pg_stat_activity a on a.pid = l.pid
         left join pg_catalog.pg_class c on c.oid = l.relation
         left join pg_catalog.pg_namespace n on n.oid = c.relnamespace
         where l.granted and l.pid <> pg_backend_pid() and a.usename is not null
           and l.database = (select oid from pg_catalog.pg_database where datname = current_database())
           and (n.nspname in ('public', 'memctl') and c.relkind in ('r', 'p')
                  and ($1 or l.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'))
                or l.locktype = 'advisory'
                  and (l.classid::bigint << 32 | l.objid::bigint) = {INIT_LOCK}::bigint)
         order by array_position(array['AccessExclusiveLock', 'ExclusiveLock', 'ShareRowExclusiveLock', 'ShareLock'], l.mode),
           a.pid, 3 limit 1"
    );
    let row = connection.client.query_opt(&query, &[&is_strong]).await;
    let row = row.map_err(&failed)?;
    Ok(row.map(|row| Holder {
        role: row.get(0),
        process: row.get(1),
        object: row.get(2),
        mode: row.get(3),
    }))
}

/// Number of records that a plan would remove from one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shrinking {
    /// Records to remove.
    pub going: u64,
    /// Records in total.
    pub of: u64,
    /// `true` for the shared store, `false` for the local store.
    pub is_remote: bool,
}

impl Shrinking {
    /// Returns `true` if the plan removes more than a tenth.
    pub(super) fn is_much(self) -> bool {
        self.going * 10 > self.of
    }
}

impl std::fmt::Display for Shrinking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = if self.is_remote {
            "this workspace shares would go from the shared store"
        } else {
            "others share would go from this memory"
        };
        write!(f, "{} of {} records that {place}", self.going, self.of)
    }
}

/// Result of [`prune`].
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct RemotePruneReport {
    /// Host, port and name.
    pub database: String,
    /// Number of removed rows; of all users if an administrator runs it.
    pub removed: u64,
    /// `true` if the count covers all users.
    pub of_all: bool,
    /// `true` if nothing was removed.
    pub dry_run: bool,
}

/// Removes expired rows; with `dry_run`, only counts them.
pub async fn prune(address: &Address, dry_run: bool) -> Result<RemotePruneReport, Error> {
    named(address, pruned(address, dry_run)).await
}

async fn pruned(address: &Address, dry_run: bool) -> Result<RemotePruneReport, Error> {
    let mut connection = Connection::open(address).await?;
    migrate::demand(&connection).await?;
    let failed = connection.failed("what has expired cannot be removed");
    let who = "select memctl.current_user_id() is null";
    let of_all: bool = connection
        .client
        .query_one(who, &[])
        .await
        .map_err(&failed)?
        .get(0);
    let expired = "expires_at < now()";
    // A user's rows that a server holds expire there.
    let own = "held_by = (select memctl.current_user_id())";
    let counted = if of_all { "true" } else { own };
    let count = format!("select count(*) from public.agent_memory where {counted} and {expired}");
    let transaction = connection.begin().await?;
    let before: i64 = transaction
        .query_one(&count, &[])
        .await
        .map_err(&failed)?
        .get(0);
    let mut removed = u64::try_from(before).unwrap_or_default();
    if of_all && !dry_run {
        let clean = "select public.cleanup_expired_memory()";
        transaction.execute(clean, &[]).await.map_err(&failed)?;
        let keep = "select memctl.keep_logs()";
        transaction.execute(keep, &[]).await.map_err(&failed)?;
        let keep = "select memctl.keep_audit()";
        transaction.execute(keep, &[]).await.map_err(&failed)?;
    } else if !dry_run {
        let bury = format!(
            "update public.agent_memory
             set entry = null, deleted_at = now(), content = '', metadata = '{{}}', embedding = null, expires_at = null
             where {own} and {expired} and origin is not null and deleted_at is null"
        );
        removed = transaction.execute(&bury, &[]).await.map_err(&failed)?;
        // Logins have no right to delete, since that right would also allow locking the table.
        let delete = "select memctl.delete_expired()";
        let row = transaction.query_one(delete, &[]).await;
        let deleted: i64 = row.map_err(&failed)?.get(0);
        removed += u64::try_from(deleted).unwrap_or_default();
    }
    transaction.commit().await.map_err(&failed)?;
    Ok(RemotePruneReport {
        database: address.shown(),
        removed,
        of_all,
        dry_run,
    })
}
