//! Where a database is and how to log in: its URL, taken apart.
//!
//! A URL holds a password, so there is no `Display`, and `Debug` shows host and name only.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use url::Url;

use super::error::Error;

/// How long a connection may take to come about.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// Who must have signed the server's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trusted {
    /// Nobody: the way is encrypted where it can be, and who is at its end is not known.
    Anybody,
    /// Those whom this system trusts.
    System,
    /// Those in this file.
    File(PathBuf),
}

/// A database and a login.
#[derive(Clone)]
pub struct Address {
    url: Url,
    config: Config,
    trusted: Trusted,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

impl Address {
    /// Reads `postgres://user:password@host:port/name?sslmode=…`.
    ///
    /// `sslmode` means what it does elsewhere: `disable`; `prefer`, which is the default on this
    /// machine; `require`, the default to another one, which encrypts and does not look at the
    /// certificate; `verify-full`, which does (and `verify-ca` is taken for it). With `sslrootcert`,
    /// a file or `system`, the certificate is always looked at.
    ///
    /// # Errors
    ///
    /// [`Error::Url`], in words that repeat nothing of the URL but the name of a parameter.
    pub fn parse(given: &str) -> Result<Self, Error> {
        let bad = |reason: &str| Error::Url(reason.to_owned());
        let mut url =
            Url::parse(given.trim()).map_err(|_| bad("it is not `postgres://user@host/name`"))?;
        if !matches!(url.scheme(), "postgres" | "postgresql") {
            return Err(bad("it does not begin with `postgres://`"));
        }
        let mut mode = None;
        let mut root = None;
        let mut rest = Vec::new();
        for (name, value) in url.query_pairs() {
            match &*name {
                "sslmode" => mode = Some(value.into_owned()),
                "sslrootcert" => root = Some(value.into_owned()),
                _ => rest.push((name.into_owned(), value.into_owned())),
            }
        }
        let full = url.clone();
        url.set_query(None);
        if !rest.is_empty() {
            url.query_pairs_mut().extend_pairs(rest);
        }
        let mut config: Config = url
            .as_str()
            .parse()
            .map_err(|error: tokio_postgres::Error| {
                let reason = std::error::Error::source(&error);
                bad(&reason.map_or_else(|| error.to_string(), ToString::to_string))
            })?;
        if config.get_hosts().is_empty() {
            return Err(bad("it names no host"));
        }
        if config.get_user().is_none() {
            return Err(bad("it names no user"));
        }
        let root = match root.as_deref() {
            None | Some("") => None,
            Some("system") => Some(Trusted::System),
            Some(path) => Some(Trusted::File(path.into())),
        };
        let is_here = all_here(&config);
        let (ssl, trusted) = match (mode.as_deref(), root) {
            (Some("disable"), _) => (SslMode::Disable, Trusted::Anybody),
            (Some("prefer"), None) => (SslMode::Prefer, Trusted::Anybody),
            (None, None) if is_here => (SslMode::Prefer, Trusted::Anybody),
            (Some("require") | None, None) => (SslMode::Require, Trusted::Anybody),
            (Some("verify-ca" | "verify-full"), None) => (SslMode::Require, Trusted::System),
            // Who names a certificate does not want to go on without it.
            (Some("prefer" | "require" | "verify-ca" | "verify-full") | None, Some(root)) => {
                (SslMode::Require, root)
            }
            (Some(_), _) => {
                return Err(bad(
                    "its `sslmode` is none of disable, prefer, require, verify-ca, verify-full",
                ));
            }
        };
        config.ssl_mode(ssl).application_name("memctl");
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_WITHIN);
        }
        Ok(Self {
            url: full,
            config,
            trusted,
        })
    }

    /// Host, port and name: what may be shown.
    pub fn shown(&self) -> String {
        let host = self.config.get_hosts().first().map(|host| match host {
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        });
        let port = self.config.get_ports().first().copied().unwrap_or(5432);
        let user = self.config.get_user().unwrap_or_default();
        let name = self.config.get_dbname().unwrap_or(user);
        format!("{}:{port}/{name}", host.unwrap_or_default())
    }

    /// The URL with which this login comes to the same database. It holds the password.
    pub(super) fn for_login(&self, role: &str, password: &str) -> String {
        let mut url = self.url.clone();
        // Supabase's pooler tells projects apart by what follows the name of the role.
        let user = match self.url.username().split_once('.') {
            Some((_, project)) if url.host_str().is_some_and(|h| h.contains(".pooler.")) => {
                format!("{role}.{project}")
            }
            _ => role.to_owned(),
        };
        // These fail only for URLs without a host, whose user is a parameter.
        let is_set = url.set_username(&user).is_ok() && url.set_password(Some(password)).is_ok();
        let rest: Vec<(String, String)> = url
            .query_pairs()
            .filter(|(name, _)| name != "user" && name != "password")
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        url.set_query(None);
        if !is_set || !rest.is_empty() {
            let mut pairs = url.query_pairs_mut();
            pairs.extend_pairs(rest);
            if !is_set {
                pairs
                    .append_pair("user", &user)
                    .append_pair("password", password);
            }
        }
        if url.path().trim_start_matches('/').is_empty() {
            // Else the login's own name would be taken for that of the database.
            let name = self.config.get_dbname().or(self.config.get_user());
            url.set_path(&format!("/{}", name.unwrap_or_default()));
        }
        url.to_string()
    }

    /// Whether nobody can sit between us and the server.
    pub(super) fn is_here(&self) -> bool {
        all_here(&self.config)
    }

    /// What the driver wants to know.
    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// Whose certificates count.
    pub(super) fn trusted(&self) -> &Trusted {
        &self.trusted
    }

    /// The text without the password.
    pub(super) fn scrub(&self, text: &str) -> String {
        let password = self.config.get_password().map(String::from_utf8_lossy);
        match password {
            Some(password) if !password.is_empty() => text.replace(&*password, "[password]"),
            _ => text.to_owned(),
        }
    }
}

/// Whether all hosts are this machine.
fn all_here(config: &Config) -> bool {
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => {
            matches!(name.as_str(), "localhost" | "::1" | "[::1]") || name.starts_with("127.")
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_how_the_way_is_secured() {
        let check = |url: &str, expected: (SslMode, Trusted)| {
            let address = Address::parse(url).unwrap();
            let found = (address.config.get_ssl_mode(), address.trusted);
            assert_eq!(found, expected, "{url}");
        };
        let file = || Trusted::File("ca.pem".into());
        check(
            "postgres://u@localhost/db",
            (SslMode::Prefer, Trusted::Anybody),
        );
        check(
            "postgres://u@db.example/db",
            (SslMode::Require, Trusted::Anybody),
        );
        check(
            "postgresql://u@db.example/db?sslmode=verify-full",
            (SslMode::Require, Trusted::System),
        );
        check(
            "postgres://u@db.example/db?sslmode=require&sslrootcert=ca.pem",
            (SslMode::Require, file()),
        );
        check(
            "postgres://u@db.example/db?sslmode=disable",
            (SslMode::Disable, Trusted::Anybody),
        );
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        let check = |url: &str, expected: &str| {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains(expected), "{url}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        };
        check("hunter2", "it is not `postgres://user@host/name`");
        check("mysql://u:hunter2@h/db", "does not begin with");
        check("postgres://u:hunter2@h/db?sslmode=allow", "`sslmode`");
        check("postgres://u:hunter2@h/db?colour=red", "colour");
        check("postgres://u:hunter2@h:x/db", "it is not");
        check("postgres:///db", "no host");
        check("postgres://h/db", "no user");
    }

    #[test]
    fn a_password_is_not_shown() {
        let address = Address::parse("postgres://u:hunter2@h:5433/db").unwrap();
        assert_eq!(format!("{address:?}"), "h:5433/db");
        assert_eq!(address.scrub("no hunter2 here"), "no [password] here");
    }

    #[test]
    fn another_login_comes_to_the_same_database() {
        let check = |url: &str, expected: &str| {
            let address = Address::parse(url).unwrap();
            assert_eq!(address.for_login("memctl_ann", "pw"), expected);
        };
        check(
            "postgres://postgres:hunter2@h:5433/db?sslmode=verify-full",
            "postgres://memctl_ann:pw@h:5433/db?sslmode=verify-full",
        );
        check(
            "postgres://postgres@localhost",
            "postgres://memctl_ann:pw@localhost/postgres",
        );
        check(
            "postgres://postgres.abc:x@eu.pooler.supabase.com/postgres",
            "postgres://memctl_ann.abc:pw@eu.pooler.supabase.com/postgres",
        );
        check(
            "postgres:///db?host=/run/pg&user=postgres&password=hunter2",
            "postgres:///db?host=%2Frun%2Fpg&user=memctl_ann&password=pw",
        );
    }
}
