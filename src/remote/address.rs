//! Database address, login and security policy, parsed from a URL, with safe defaults.
//!
//! A URL holds a password, so there is no `Display`, and `Debug` shows only host and name.
//!
//! Invariants: the certificate of another machine is verified unless the URL says otherwise.
//! `sslmode=require` verifies no certificate, so the login has to be bound to the channel, and no
//! option lifts that. A plain connection logs in with SCRAM only (see [`super::tls`]).

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, Host, SslMode};
use url::Url;

use crate::remote::error::Error;

/// Parameters of the driver, in seconds, unless the URL has them. A vanished server is noticed within
/// about a minute.
const DEFAULTS: [(&str, &str); 5] = [
    ("connect_timeout", "10"),
    ("keepalives_idle", "30"),
    ("keepalives_interval", "10"),
    ("keepalives_retries", "3"),
    ("tcp_user_timeout", "60"),
];

/// A database and a login.
#[derive(Clone)]
pub struct Address {
    url: Url,
    pub(super) host: Host,
    pub(super) config: Config,
    /// Signers that are trusted for the server's certificate; `None` for a connection without TLS.
    pub(super) trusted: Option<Trusted>,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

impl Address {
    /// Parses `postgres://user:password@host:port/name?sslmode=…`.
    ///
    /// By default a remote server needs a certificate that this system trusts for this host, and the
    /// login is bound to the TLS channel.
    ///
    /// # Errors
    ///
    /// The text repeats nothing of the URL except parameter names.
    pub fn parse(given: &str) -> Result<Self, Error> {
        let bad = |reason: &str| Error::url(reason);
        let mut url =
            Url::parse(given.trim()).map_err(|_| bad("it is not `postgres://user@host/name`"))?;
        if !matches!(url.scheme(), "postgres" | "postgresql") {
            return Err(bad("it does not begin with `postgres://`"));
        }
        let mut given = UrlOptions::default();
        let mut rest = Vec::new();
        for (name, value) in url.query_pairs() {
            let value = value.into_owned();
            match OPTIONS.iter().find(|option| **option == name) {
                Some(option) => drop(given.insert(*option, value)),
                None => rest.push((name.into_owned(), value)),
            }
        }
        for (name, value) in DEFAULTS {
            if !rest.iter().any(|(given, _)| given == name) {
                rest.push((name.to_owned(), value.to_owned()));
            }
        }
        let full = url.clone();
        url.set_query(None);
        url.query_pairs_mut().extend_pairs(&rest);
        write_spaces_out(&mut url);
        let mut config: Config = url
            .as_str()
            .parse()
            .map_err(|error: tokio_postgres::Error| {
                let reason = std::error::Error::source(&error);
                bad(&reason.map_or_else(|| error.to_string(), ToString::to_string))
            })?;
        let host = match (config.get_hosts(), config.get_hostaddrs()) {
            ([], []) => return Err(bad("it names no host")),
            ([host], []) => host.clone(),
            _ => return Err(bad("it names more than one host or address")),
        };
        if config.get_user().is_none() {
            return Err(bad("it names no user"));
        }
        let trusted = trusted(&given, &host).map_err(bad)?;
        let has_password = config.get_password().is_some();
        let binding = binding(&given, trusted.as_ref(), has_password).map_err(bad)?;
        let ssl_mode = match trusted {
            None => SslMode::Disable,
            Some(_) => SslMode::Require,
        };
        config
            .application_name("memctl")
            .ssl_mode(ssl_mode)
            .channel_binding(binding);
        Ok(Self {
            url: full,
            host,
            config,
            trusted,
        })
    }

    /// Host, port and database name, without credentials.
    pub fn shown(&self) -> String {
        let (host, port) = (host_name(&self.host), self.port());
        let user = self.config.get_user().unwrap_or_default();
        let name = self.config.get_dbname().unwrap_or(user);
        format!("{host}:{port}/{name}")
    }

    /// URL of another login to the same database. It contains the password.
    pub(super) fn for_login(&self, role: &str, password: &str) -> String {
        let mut url = self.url.clone();
        // Supabase's pooler selects the project by the suffix of the role name.
        let user = match self.url.username().split_once('.') {
            Some((_, project)) if url.host_str().is_some_and(|h| h.contains(".pooler.")) => {
                format!("{role}.{project}")
            }
            _ => role.to_owned(),
        };
        // These setters fail only for URLs without a host, whose user is a query parameter.
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
        write_spaces_out(&mut url);
        if url.path().trim_start_matches('/').is_empty() {
            // Without a path, the driver would use the login's name as the database name.
            let name = self.config.get_dbname().or(self.config.get_user());
            url.set_path(&format!("/{}", name.unwrap_or_default()));
        }
        url.to_string()
    }

    /// Returns `true` if the host is local, so that no other machine can intercept the connection.
    pub(super) fn is_local(&self) -> bool {
        is_here(&self.host)
    }

    pub(super) fn port(&self) -> u16 {
        self.config.get_ports().first().copied().unwrap_or(5432)
    }

    /// Error of a server that does not answer.
    pub(super) fn unreachable(&self, reason: &str) -> Error {
        Error::Unreachable(self.shown(), self.scrub(reason))
    }

    /// `verified`, `encrypted` or `plain`.
    pub(super) fn security(&self) -> &'static str {
        match self.trusted {
            None => "plain",
            Some(Trusted::AnyCertificate) => "encrypted",
            Some(Trusted::System | Trusted::File(_)) => "verified",
        }
    }

    /// Replaces the password in `text` with `[password]`.
    pub(super) fn scrub(&self, text: &str) -> String {
        let password = self.config.get_password().map(String::from_utf8_lossy);
        match password {
            Some(password) if !password.is_empty() => text.replace(&*password, "[password]"),
            _ => text.to_owned(),
        }
    }
}

/// Encodes spaces in the query as `%20`, which the driver expects, and not as `+`.
fn write_spaces_out(url: &mut Url) {
    // A literal plus is encoded as `%2B`.
    let query = url.query().map(|query| query.replace('+', "%20"));
    url.set_query(query.as_deref());
}

/// Returns `true` if a host is this machine. A name that only resembles a loopback address does not
/// count.
fn is_here(host: &Host) -> bool {
    let name = host_name(host);
    let address = name.parse::<IpAddr>();
    socket_directory(host).is_some()
        || name.eq_ignore_ascii_case("localhost")
        || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Returns the name of a host on the network, or the directory of a socket.
pub(super) fn host_name(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(directory) => directory.display().to_string(),
    }
}

/// Returns the directory of a database's socket; `None` for a host on the network. On Windows the driver has no
/// sockets.
pub(super) fn socket_directory(host: &Host) -> Option<&Path> {
    match host {
        Host::Tcp(_) => None,
        #[cfg(unix)]
        Host::Unix(directory) => Some(directory),
    }
}

/// Trusted issuers of the server's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trusted {
    /// Any certificate: the connection may be encrypted, but the server is not authenticated.
    AnyCertificate,
    /// Root certificates of this system.
    System,
    /// Certificates in this file.
    File(PathBuf),
}

/// Security options as given in the URL.
type UrlOptions = HashMap<&'static str, String>;

/// Names of the security options.
const OPTIONS: [&str; 3] = ["sslmode", "sslrootcert", "channel_binding"];

/// Decides who is trusted to sign the server's certificate; `None` without TLS, which sockets never
/// have.
fn trusted(given: &UrlOptions, host: &Host) -> Result<Option<Trusted>, &'static str> {
    let option = |name| given.get(name).map(String::as_str);
    let root = match option("sslrootcert") {
        None | Some("") => None,
        Some("system") => Some(Trusted::System),
        Some(path) => Some(Trusted::File(path.into())),
    };
    let trusted = match (option("sslmode"), root) {
        (Some("disable"), _) => None,
        (None, None) if is_here(host) => None,
        (Some("require"), None) => Some(Trusted::AnyCertificate),
        (Some("verify-ca" | "verify-full") | None, None) => Some(Trusted::System),
        (Some("require" | "verify-ca" | "verify-full") | None, Some(root)) => Some(root),
        (Some(_), _) => {
            return Err("its `sslmode` is none of disable, require, verify-ca, verify-full");
        }
    };
    Ok(trusted.filter(|_| socket_directory(host).is_none()))
}

/// Decides whether the login has to be bound to the TLS channel. The driver then refuses every login but
/// SCRAM with channel binding, so the server cannot ask for the password.
fn binding(
    given: &UrlOptions,
    trusted: Option<&Trusted>,
    has_password: bool,
) -> Result<ChannelBinding, &'static str> {
    let wanted = match given.get("channel_binding").map(String::as_str) {
        None => None,
        Some("require") => Some(ChannelBinding::Require),
        Some("prefer") => Some(ChannelBinding::Prefer),
        Some("disable") => Some(ChannelBinding::Disable),
        Some(_) => return Err("its `channel_binding` is none of require, prefer, disable"),
    };
    match (trusted, wanted) {
        (None, Some(ChannelBinding::Require)) => {
            Err("nothing binds a login without TLS: add `sslmode=verify-full` or `sslmode=require`")
        }
        (None, _) => Ok(ChannelBinding::Disable),
        (Some(Trusted::AnyCertificate), None) => Ok(ChannelBinding::Require),
        (Some(Trusted::AnyCertificate), Some(wanted)) if wanted != ChannelBinding::Require => Err(
            "with `sslmode=require` nobody verifies the certificate, so the login has to be bound to the \
             channel: leave `channel_binding` out, or use `sslmode=verify-full`",
        ),
        // Without a password there is nothing to ask for.
        (Some(_), None) if !has_password => Ok(ChannelBinding::Prefer),
        (Some(_), wanted) => Ok(wanted.unwrap_or(ChannelBinding::Require)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_how_the_way_is_secured() {
        use ChannelBinding::{Disable as Unbound, Prefer, Require as Bound};
        let check = |rest: &str, expected, is_local| {
            let address = Address::parse(&format!("postgres://{rest}")).unwrap();
            let binding = address.config.get_channel_binding();
            let found = (address.trusted.clone(), binding, address.is_local());
            let (trusted, binding) = expected;
            assert_eq!(found, (trusted, binding, is_local), "{rest}");
            let is_plain = address.config.get_ssl_mode() == SslMode::Disable;
            assert_eq!(is_plain, address.trusted.is_none(), "{rest}");
        };
        let plain = || (None, Unbound);
        let encrypted = || (Some(Trusted::AnyCertificate), Bound);
        let system = |binding| (Some(Trusted::System), binding);
        let file = |binding| (Some(Trusted::File("ca.pem".into())), binding);
        check("u:p@localhost/db", plain(), true);
        check("u@[::1]/db", plain(), true);
        // The driver has no sockets with a path on Windows.
        if cfg!(unix) {
            check("/db?host=/run/pg&user=u&sslmode=require", plain(), true);
        }
        check("u:p@db.example/db", system(Bound), false);
        check("u:p@localhost/db?sslmode=verify-ca", system(Bound), true);
        check("u:p@localhost/db?sslrootcert=system", system(Bound), true);
        check("u:p@db.example/db?sslmode=require", encrypted(), false);
        check("u@db.example/db?sslmode=require", encrypted(), false);
        check(
            "u:p@db.example/db?sslmode=require&sslrootcert=ca.pem",
            file(Bound),
            false,
        );
        check("u:p@db.example/db?sslmode=disable", plain(), false);
        check(
            "u:p@db.example/db?channel_binding=prefer",
            system(Prefer),
            false,
        );
        // No server can ask for a password that is not there.
        check("u@db.example/db", system(Prefer), false);
        // A name that starts like a loopback address.
        check("u:p@127.evil.example/db", system(Bound), false);
    }

    #[test]
    fn options_reach_the_driver_with_their_spaces() {
        let url =
            "postgres://u@h/db?sslmode=disable&options=-c%20lock_timeout%3D1s%20-c%20a%3Db%2Bc";
        let address = Address::parse(url).unwrap();
        let expected = Some("-c lock_timeout=1s -c a=b+c");
        assert_eq!(address.config.get_options(), expected);
        let login = Address::parse(&address.for_login("ann", "pw")).unwrap();
        assert_eq!(login.config.get_options(), expected);
    }

    #[test]
    fn error_names_the_problem_without_the_password() {
        let check = |url: &str, expected: &str| {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains(expected), "{url}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        };
        check("hunter2", "it is not `postgres://user@host/name`");
        check("mysql://u:hunter2@h/db", "does not begin with");
        check("postgres://u:hunter2@h/db?sslmode=allow", "`sslmode`");
        check("postgres://u:hunter2@h/db?colour=red", "colour");
        for binding in ["prefer", "disable"] {
            let url =
                format!("postgres://u:hunter2@h/db?sslmode=require&channel_binding={binding}");
            check(&url, "verify-full");
        }
        check(
            "postgres://u:hunter2@localhost/db?channel_binding=require",
            "without TLS",
        );
        check("postgres://u:hunter2@h/db?sslmode=prefer", "`sslmode`");
        check(
            "postgres://u:hunter2@h/db?channel_binding=hunter2",
            "prefer",
        );
        check("postgres://u:hunter2@h:x/db", "it is not");
        check("postgres:///db", "no host");
        check("postgres://u:hunter2@localhost,h/db", "more than one");
        check(
            "postgres://u@localhost/db?hostaddr=192.0.2.7",
            "more than one",
        );
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
