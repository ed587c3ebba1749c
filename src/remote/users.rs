//! Logins. A login is a role of the server that belongs to one user; a user may have many, one for
//! each machine.

use postgres_protocol::password::scram_sha_256;
use serde::Serialize;

use super::address::Address;
use super::connection::{Connection, failure};
use super::error::Error;
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
}

/// Makes a login for a new user, or one more for the user of this id.
pub async fn add_user(
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
    let create = format!(
        "create role \"{role}\" login password '{verifier}'; grant memctl_user to \"{role}\""
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
    let login = "insert into memctl.logins (role_name, user_id) values ($1::text, $2::text::uuid)";
    transaction
        .execute(login, &[&role, &user_id])
        .await
        .map_err(failed)?;
    transaction.commit().await.map_err(failed)?;
    Ok(UserReport {
        url: address.for_login(&role, &password),
        user_id,
        login: role,
    })
}
