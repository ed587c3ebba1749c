//! Logins. A login is a server role that belongs to one user. A user can have several, one per
//! machine.

use postgres_protocol::password::scram_sha_256;
use serde::Serialize;

use super::address::Address;
use super::connection::Connection;
use super::error::Error;
use super::migrate;

/// Data of a new login, shown once.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct UserReport {
    /// User id.
    pub user_id: String,
    /// Role name.
    pub login: String,
    /// URL for `DATABASE_URL`. It contains the password, which cannot be recovered later.
    pub url: String,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// Creates a login for a new user, or another login for an existing user.
///
/// If a removed login (`drop role`) had this name, the new login gets that user only if `user_id`
/// is given.
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
        return Err(Error::input(
            format!(
                "`{}` cannot be the name of a user: allowed are up to 40 of a–z, 0–9 and `_`, a letter first",
                name.escape_debug()
            ),
            "memctl remote user add ann --url ADMIN_URL",
        ));
    }
    let user_id = match user_id {
        None => random(),
        Some(given) => uuid::Uuid::try_parse(given)
            .map_err(|_| {
                let given = given.escape_debug();
                Error::input(
                    format!("`{given}` is not a user id: it has the form `2f1c…-…` of a UUID"),
                    "memctl remote status shows the id of a login",
                )
            })?
            .to_string(),
    };
    let connection = Connection::open(address).await?;
    migrate::demand(&connection).await?;
    let role = format!("memctl_{name}");
    let password = format!("{}{}", random(), random()).replace('-', "");
    // The server gets only the SCRAM verifier, so the password cannot appear in its log. Neither
    // text contains a quote.
    let verifier = scram_sha_256(password.as_bytes());
    // Limits how long a session that is idle in a transaction can hold its locks.
    let create = format!(
        "create role \"{role}\" login password '{verifier}'; grant memctl_user to \"{role}\";
         alter role \"{role}\" set idle_in_transaction_session_timeout = '5min'"
    );
    let doing = "the login cannot be made";
    connection.batch(doing, "begin").await?;
    let exists = "select exists (select from pg_catalog.pg_roles where rolname = $1)";
    if connection.row(doing, exists, &[&role]).await?.get(0) {
        return Err(Error::input(
            format!("the login `{role}` exists already"),
            "choose another name, or remove it on the server: drop role",
        ));
    }
    connection.batch(doing, &create).await?;
    let user = "insert into auth.users (id) values ($1::uuid) on conflict do nothing";
    connection.run(doing, user, &[&user_id]).await?;
    let earlier = "delete from memctl.logins where role_name = $1 returning user_id::text";
    let earlier = connection.rows(doing, earlier, &[&role]).await?;
    let earlier: Option<String> = earlier.first().map(|row| row.get(0));
    let login = "insert into memctl.logins (role_name, user_id) values ($1, $2::uuid)";
    connection.run(doing, login, &[&role, &user_id]).await?;
    connection.batch(doing, "commit").await?;
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
