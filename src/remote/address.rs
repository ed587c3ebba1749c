//! Database address, login and security policy, parsed from a URL, with safe defaults.
//!
//! A URL holds a password, so there is no `Display`, and `Debug` shows only host and name.
//!
//! Invariants: the certificate is verified unless the host is local or the URL disables it. A
//! password is sent in clear text or as MD5 only if `require_auth` allows it. `sslmode=require`
//! verifies no certificate, so the login has to be bound to the channel, and no option lifts that.

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
    host: Host,
    config: Config,
    policy: Policy,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

impl Address {
    /// Parses `postgres://user:password@host:port/name?sslmode=…`.
    ///
    /// The security policy decides how the connection is secured. By default a remote server needs a
    /// certificate that this system trusts for this host, and the login is bound to the TLS
    /// channel.
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
        let policy = Policy::decide(
            &given,
            ConnectionContext {
                is_local: is_here(&host),
                is_socket: socket_directory(&host).is_some(),
                has_password: config.get_password().is_some(),
            },
        )
        .map_err(bad)?;
        config.application_name("memctl");
        Ok(Self {
            url: full,
            host,
            config,
            policy,
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

    pub(super) fn host(&self) -> &Host {
        &self.host
    }

    pub(super) fn port(&self) -> u16 {
        self.config.get_ports().first().copied().unwrap_or(5432)
    }

    /// Error of a server that does not answer.
    pub(super) fn unreachable(&self, reason: &str) -> Error {
        Error::Unreachable(self.shown(), self.scrub(reason))
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.policy
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

/// Login methods that the server may ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a set: any of them may be allowed")]
pub(super) struct Methods {
    pub(super) scram: bool,
    pub(super) md5: bool,
    pub(super) clear_text: bool,
    /// No authentication by password: `trust`, `peer`, or a certificate.
    pub(super) none: bool,
}

/// Security options as given in the URL.
type UrlOptions = HashMap<&'static str, String>;

/// Names of the security options.
const OPTIONS: [&str; 4] = ["sslmode", "sslrootcert", "channel_binding", "require_auth"];

/// Properties of the server and the login that determine the defaults.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionContext {
    /// All hosts are loopback addresses or local sockets.
    pub(super) is_local: bool,
    /// All hosts are local sockets.
    pub(super) is_socket: bool,
    pub(super) has_password: bool,
}

/// Security policy of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) encryption: SslMode,
    pub(super) trusted: Trusted,
    pub(super) methods: Methods,
    /// Applies over TLS; a plain connection needs a binding only if the URL says `require`.
    pub(super) binding: ChannelBinding,
    pub(super) is_binding_given: bool,
}

impl Policy {
    /// Derives the policy from the options.
    ///
    /// # Errors
    ///
    /// The reason why the options conflict, without their values.
    pub(super) fn decide(
        given: &UrlOptions,
        context: ConnectionContext,
    ) -> Result<Self, &'static str> {
        let option = |name| given.get(name).map(String::as_str);
        let root = match option("sslrootcert") {
            None | Some("") => None,
            Some("system") => Some(Trusted::System),
            Some(path) => Some(Trusted::File(path.into())),
        };
        let mode = option("sslmode");
        let (encryption, trusted) = match (mode, root) {
            (Some("disable"), _) => (SslMode::Disable, Trusted::AnyCertificate),
            (Some("prefer"), None) => (SslMode::Prefer, Trusted::AnyCertificate),
            (None, None) if context.is_local => (SslMode::Prefer, Trusted::AnyCertificate),
            (Some("require"), None) => (SslMode::Require, Trusted::AnyCertificate),
            (Some("verify-ca" | "verify-full") | None, None) => (SslMode::Require, Trusted::System),
            // A given certificate implies that TLS is required.
            (Some("prefer" | "require" | "verify-ca" | "verify-full") | None, Some(root)) => {
                (SslMode::Require, root)
            }
            (Some(_), _) => {
                return Err(
                    "its `sslmode` is none of disable, prefer, require, verify-ca, verify-full",
                );
            }
        };
        let methods = methods(option("require_auth"), context)?;
        let binding = match option("channel_binding") {
            None if methods.only_scram() => ChannelBinding::Require,
            None | Some("prefer") => ChannelBinding::Prefer,
            Some("require") => ChannelBinding::Require,
            Some("disable") => ChannelBinding::Disable,
            Some(_) => return Err("its `channel_binding` is none of require, prefer, disable"),
        };
        let mut policy = Self {
            encryption,
            trusted,
            methods,
            binding,
            is_binding_given: given.contains_key("channel_binding"),
        };
        let is_unverified =
            encryption == SslMode::Require && policy.trusted == Trusted::AnyCertificate;
        let gives_away = methods.md5 || methods.clear_text;
        if is_unverified {
            if policy.is_binding_given && binding != ChannelBinding::Require {
                return Err(
                    "with `sslmode=require` nobody verifies the certificate, so the login has to be bound to \
                     the channel: leave `channel_binding` out, or use `sslmode=verify-full`",
                );
            }
            if gives_away {
                return Err(
                    "`require_auth` allows a password in clear text or as MD5, and with `sslmode=require` nobody \
                     verifies the certificate: use `sslmode=verify-full`",
                );
            }
            policy.binding = ChannelBinding::Require;
        }
        if gives_away && encryption == SslMode::Prefer && !context.is_local {
            return Err(
                "`require_auth` allows a password in clear text or as MD5, and with `sslmode=prefer` anybody can \
                 ask for it: use `sslmode=verify-full`",
            );
        }
        Ok(policy)
    }
}

impl Methods {
    /// Returns `true` if only SCRAM is allowed.
    fn only_scram(self) -> bool {
        self == Self {
            scram: true,
            ..Self::default()
        }
    }
}

/// Parses `require_auth`, a list of libpq's method names.
fn methods(given: Option<&str>, context: ConnectionContext) -> Result<Methods, &'static str> {
    let Some(given) = given else {
        return Ok(Methods {
            scram: true,
            // Without a password the server cannot authenticate itself; a socket is trusted by the
            // system.
            none: !context.has_password || context.is_socket,
            ..Methods::default()
        });
    };
    let mut methods = Methods::default();
    for name in given.split(',') {
        match name.trim() {
            "scram-sha-256" => methods.scram = true,
            "md5" => methods.md5 = true,
            "password" => methods.clear_text = true,
            "none" => methods.none = true,
            _ => {
                return Err(
                    "its `require_auth` names something else than scram-sha-256, md5, password, none",
                );
            }
        }
    }
    Ok(methods)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_how_the_way_is_secured() {
        use SslMode::{Disable as Never, Prefer as IfOffered, Require as Always};
        let check = |url: &str, encryption, trusted, is_local| {
            let address = Address::parse(url).unwrap();
            let policy = address.policy();
            let found = (
                policy.encryption,
                policy.trusted.clone(),
                address.is_local(),
            );
            assert_eq!(found, (encryption, trusted, is_local), "{url}");
        };
        let any = || Trusted::AnyCertificate;
        let system = || Trusted::System;
        check("postgres://u@localhost/db", IfOffered, any(), true);
        check("postgres://u@[::1]/db", IfOffered, any(), true);
        // The driver has no sockets with a path on Windows.
        if cfg!(unix) {
            check("postgres:///db?host=/run/pg&user=u", IfOffered, any(), true);
        }
        check("postgres://u@db.example/db", Always, system(), false);
        check(
            "postgres://u@db.example/db?sslmode=require",
            Always,
            any(),
            false,
        );
        check(
            "postgres://u@db.example/db?sslmode=require&sslrootcert=ca.pem",
            Always,
            Trusted::File("ca.pem".into()),
            false,
        );
        check(
            "postgres://u@db.example/db?sslmode=disable",
            Never,
            any(),
            false,
        );
        // A name that starts like a loopback address.
        check("postgres://u@127.evil.example/db", Always, system(), false);
    }

    #[test]
    fn options_reach_the_driver_with_their_spaces() {
        let url =
            "postgres://u@h/db?sslmode=disable&options=-c%20lock_timeout%3D1s%20-c%20a%3Db%2Bc";
        let address = Address::parse(url).unwrap();
        let expected = Some("-c lock_timeout=1s -c a=b+c");
        assert_eq!(address.config().get_options(), expected);
        let login = Address::parse(&address.for_login("ann", "pw")).unwrap();
        assert_eq!(login.config().get_options(), expected);
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
        check(
            "postgres://u:hunter2@h/db?sslmode=require&require_auth=password",
            "verify-full",
        );
        check(
            "postgres://u:hunter2@h/db?require_auth=hunter2",
            "scram-sha-256",
        );
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

    const FAR: ConnectionContext = ConnectionContext {
        is_local: false,
        is_socket: false,
        has_password: true,
    };
    const HERE: ConnectionContext = ConnectionContext {
        is_local: true,
        ..FAR
    };

    /// Fields: `sslmode sslrootcert channel_binding require_auth`; `-` means not given.
    fn decide(given: &str, context: ConnectionContext) -> Result<Policy, &'static str> {
        let words = OPTIONS.into_iter().zip(given.split(' '));
        let given = words.filter(|(_, word)| *word != "-");
        let given = given.map(|(name, word)| (name, word.to_owned())).collect();
        Policy::decide(&given, context)
    }

    #[test]
    fn defaults_verify_and_bind() {
        use SslMode::{Disable as Never, Prefer as IfOffered, Require as Always};
        let check = |given: &str, context, encryption, trusted, binding| {
            let policy = decide(given, context).unwrap();
            let found = (policy.encryption, policy.trusted, policy.binding);
            assert_eq!(found, (encryption, trusted, binding), "{given}");
            assert!(policy.methods.only_scram(), "{given}");
        };
        let file = || Trusted::File("ca.pem".into());
        let bound = ChannelBinding::Require;
        check("-", FAR, Always, Trusted::System, bound);
        check("-", HERE, IfOffered, Trusted::AnyCertificate, bound);
        check("verify-ca", HERE, Always, Trusted::System, bound);
        check("prefer", FAR, IfOffered, Trusted::AnyCertificate, bound);
        check("require", FAR, Always, Trusted::AnyCertificate, bound);
        check("require ca.pem", FAR, Always, file(), bound);
        check("- system", HERE, Always, Trusted::System, bound);
        check("disable", FAR, Never, Trusted::AnyCertificate, bound);
        check(
            "- - prefer",
            FAR,
            Always,
            Trusted::System,
            ChannelBinding::Prefer,
        );
    }

    #[test]
    fn a_password_is_given_away_only_where_that_is_asked_for() {
        let allowed = |given: &str, context| decide(given, context).map(|policy| policy.methods);
        let clear_text = allowed("verify-full - - password", FAR).unwrap();
        assert!(clear_text.clear_text && !clear_text.scram && !clear_text.md5);
        assert!(allowed("disable - - md5,scram-sha-256", FAR).unwrap().md5);
        assert!(allowed("- - - password", HERE).unwrap().clear_text);
        for given in [
            "require - - password", "require - - md5", "require - prefer", "require - disable",
            "prefer - - password",
        ] {
            assert!(allowed(given, FAR).is_err(), "{given}");
        }
        for given in [
            "require - prefer", "require - - md5", "- - - gss", "- - yes",
        ] {
            assert!(allowed(given, HERE).is_err(), "{given}");
        }
    }

    #[test]
    fn without_a_password_the_server_need_not_ask() {
        let open = ConnectionContext {
            has_password: false,
            ..HERE
        };
        assert!(decide("-", open).unwrap().methods.none);
        assert!(!decide("-", HERE).unwrap().methods.none);
        // A man in the middle could claim that no login is needed.
        let policy = decide(
            "require",
            ConnectionContext {
                is_local: false,
                ..open
            },
        );
        assert_eq!(policy.unwrap().binding, ChannelBinding::Require);
    }
}
