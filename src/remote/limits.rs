//! Time limits of a session, and the name of whoever keeps it waiting.
//!
//! Any login may hold a lock on the tables it may write to, or the advisory lock of `init`, for as long as
//! it likes. So nothing here waits without a limit, and the error names the other session.
//!
//! Deliberately absent: a retry. Whoever called knows whether a thing may be done twice.

use std::fmt;

use super::address::Address;
use super::connection::Connection;
use super::error::Error;

/// Limits of every session, unless the URL (`options=-c lock_timeout=…`), the role or the server has set one.
const LIMITS: &str = "
    select pg_catalog.set_config(s.name, s.wanted, false)
    from (values ('lock_timeout', '10s'), ('statement_timeout', '10min'),
                 ('idle_in_transaction_session_timeout', '1min')) s (name, wanted)
    where pg_catalog.current_setting(s.name) = '0'";

/// Key of the advisory lock of `init`, as an SQL expression.
pub(super) const INIT_LOCK: &str = "hashtext('memctl remote init')";

/// Sets the limits of a new session.
pub(super) async fn set(connection: &Connection) -> Result<(), Error> {
    let failed = connection.failed("time limits cannot be set");
    connection
        .client
        .batch_execute(LIMITS)
        .await
        .map_err(failed)
}

/// Lets statements of a session take as long as they need: a migration works on all rows.
pub(super) async fn let_work(connection: &Connection) -> Result<(), Error> {
    let failed = connection.failed("time limits cannot be set");
    let set = "set statement_timeout = 0; set idle_in_transaction_session_timeout = 0";
    connection.client.batch_execute(set).await.map_err(failed)
}

/// A session that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The role that logged in.
    pub role: String,
    /// The number of its process on the server.
    pub process: i32,
    /// The locked table, or the kind of lock.
    pub object: String,
    /// The mode of the lock, as the server calls it.
    pub mode: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            role,
            process,
            object,
            mode,
        } = self;
        write!(f, "`{role}` (process {process}, {mode} of {object})")
    }
}

/// Does something, and puts the holder into an error that somebody else's lock has caused, where the server
/// says who it is.
pub(super) async fn named<T>(
    address: &Address,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    match Box::pin(work).await {
        Err(error) => Err(name_holder(address, error, false).await),
        done => done,
    }
}

/// Puts the holder into such an error. `is_strong` is for those who need a table for themselves: any lock
/// on it keeps them waiting.
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
    // Everybody may see these two views; what another session is doing stays hidden in them.
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
