//! Logins. A login is a role of the server that belongs to one user; a user may have many, one for
//! each machine.

use postgres_protocol::password::scram_sha_256;
use serde::Serialize;

use super::address::Address;
use super::connection::{Connection, failure};
use super::error::Error;
use super::limits;
use super::migrate;

/// What a new login is told, once.
#[derive(Debug, Serialize)]
pub struct UserReport {
    /// The user.
    pub user_id: String,
    /// The role that logs in.
    pub login: String,
    /// The URL for `DATABASE_URL`. It holds the password, which nobody can find out again.
    pub url: String,
    /// What deserves attention.
    pub warnings: Vec<String>,
}

/// Makes a login for a new user, or one more for the user of this id.
///
/// A login of this name may have been removed (`drop role`). The new one does not become its user, unless
/// that user's id is given.
pub async fn add_user(
    address: &Address,
    name: &str,
    user_id: Option<&str>,
    random: fn() -> String,
) -> Result<UserReport, Error> {
    limits::named(address, added(address, name, user_id, random)).await
}

async fn added(
    address: &Address,
    name: &str,
    user_id: Option<&str>,
    random: fn() -> String,
) -> Result<UserReport, Error> {
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.len() <= 40
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if !is_name {
        return Err(Error::Name(name.to_owned()));
    }
    let user_id = match user_id {
        None => random(),
        Some(given) => uuid::Uuid::try_parse(given)
            .map_err(|_| Error::UserId(given.to_owned()))?
            .to_string(),
    };
    let mut connection = Connection::open(address).await?;
    migrate::demand(&connection).await?;
    let role = format!("memctl_{name}");
    let password = format!("{}{}", random(), random()).replace('-', "");
    // The server gets what proves the password, and so cannot write it into its log. Neither text has a
    // character that would end the quotation.
    let verifier = scram_sha_256(password.as_bytes());
    // A session that somebody has left open in a transaction keeps its locks for five minutes, and no longer.
    let create = format!(
        "create role \"{role}\" login password '{verifier}'; grant memctl_user to \"{role}\";
         alter role \"{role}\" set idle_in_transaction_session_timeout = '5min'"
    );
    let transaction = connection.begin().await?;
    let failed = |e| failure(address, "the login cannot be made", &e);
    let exists = transaction
        .query_one(
            "select exists (select from pg_catalog.pg_roles where rolname = $1::text)",
            &[&role],
        )
        .await
        .map_err(failed)?;
    if exists.get(0) {
        return Err(Error::Exists(role));
    }
    transaction.batch_execute(&create).await.map_err(failed)?;
    let user = "insert into auth.users (id) values ($1::text::uuid) on conflict do nothing";
    transaction
        .execute(user, &[&user_id])
        .await
        .map_err(failed)?;
    let earlier = "delete from memctl.logins where role_name = $1::text returning user_id::text";
    let earlier = transaction.query_opt(earlier, &[&role]).await;
    let earlier: Option<String> = earlier.map_err(failed)?.map(|row| row.get(0));
    let login = "insert into memctl.logins (role_name, user_id) values ($1::text, $2::text::uuid)";
    transaction
        .execute(login, &[&role, &user_id])
        .await
        .map_err(failed)?;
    transaction.commit().await.map_err(failed)?;
    let mut warnings = Vec::new();
    if let Some(earlier) = earlier.filter(|earlier| *earlier != user_id) {
        warnings.push(format!(
            "an earlier login `{role}` was that of the user {earlier}, whose rows this one does not see; for a \
             login of that user: drop role, then memctl remote user add {name} --user-id {earlier}"
        ));
    }
    Ok(UserReport {
        warnings,
        url: address.for_login(&role, &password),
        user_id,
        login: role,
    })
}
