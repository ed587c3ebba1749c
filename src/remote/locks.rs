//! Lookup of the session that holds a lock.
//!
//! Any login can hold a lock on tables that it may write to, or the advisory lock of `init`, for
//! any time. So every wait has a limit, and the error names the other session.
//!
//! Deliberately absent: retries. Only the caller knows if an operation may run twice.

use super::address::Address;
use super::connection::Connection;
use super::error::Error;
use super::holder::Holder;

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
