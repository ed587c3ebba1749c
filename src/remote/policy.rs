//! Security policy of a connection: options of the URL, and safe defaults for the rest.
//!
//! Invariants: the certificate is verified unless the host is local or the URL disables it. A
//! password is sent in clear text or as MD5 only if `require_auth` allows it. `sslmode=require`
//! verifies no certificate, so the login has to be bound to the channel, and no option lifts that.

use std::path::PathBuf;

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

/// Use of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encryption {
    Never,
    IfOffered,
    Always,
}

/// Binding of the login to the TLS channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binding {
    Never,
    IfOffered,
    Always,
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
#[derive(Debug, Default)]
pub(super) struct UrlOptions {
    pub(super) mode: Option<String>,
    pub(super) root: Option<String>,
    pub(super) binding: Option<String>,
    pub(super) require_auth: Option<String>,
}

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
    pub(super) encryption: Encryption,
    pub(super) trusted: Trusted,
    pub(super) methods: Methods,
    /// Applies over TLS; a plain connection needs a binding only if the URL says `require`.
    pub(super) binding: Binding,
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
        let root = match given.root.as_deref() {
            None | Some("") => None,
            Some("system") => Some(Trusted::System),
            Some(path) => Some(Trusted::File(path.into())),
        };
        let mode = given.mode.as_deref();
        let (encryption, trusted) = match (mode, root) {
            (Some("disable"), _) => (Encryption::Never, Trusted::AnyCertificate),
            (Some("prefer"), None) => (Encryption::IfOffered, Trusted::AnyCertificate),
            (None, None) if context.is_local => (Encryption::IfOffered, Trusted::AnyCertificate),
            (Some("require"), None) => (Encryption::Always, Trusted::AnyCertificate),
            (Some("verify-ca" | "verify-full") | None, None) => {
                (Encryption::Always, Trusted::System)
            }
            // A given certificate implies that TLS is required.
            (Some("prefer" | "require" | "verify-ca" | "verify-full") | None, Some(root)) => {
                (Encryption::Always, root)
            }
            (Some(_), _) => {
                return Err(
                    "its `sslmode` is none of disable, prefer, require, verify-ca, verify-full",
                );
            }
        };
        let methods = methods(given.require_auth.as_deref(), context)?;
        let binding = match given.binding.as_deref() {
            None if methods.only_scram() => Binding::Always,
            None | Some("prefer") => Binding::IfOffered,
            Some("require") => Binding::Always,
            Some("disable") => Binding::Never,
            Some(_) => return Err("its `channel_binding` is none of require, prefer, disable"),
        };
        let policy = Self {
            encryption,
            trusted,
            methods,
            binding,
            is_binding_given: given.binding.is_some(),
        };
        policy.consistent(context)
    }

    fn consistent(mut self, context: ConnectionContext) -> Result<Self, &'static str> {
        let is_unverified =
            self.encryption == Encryption::Always && self.trusted == Trusted::AnyCertificate;
        let gives_away = self.methods.md5 || self.methods.clear_text;
        if is_unverified {
            if self.is_binding_given && self.binding != Binding::Always {
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
            self.binding = Binding::Always;
        }
        if gives_away && self.encryption == Encryption::IfOffered && !context.is_local {
            return Err(
                "`require_auth` allows a password in clear text or as MD5, and with `sslmode=prefer` anybody can \
                 ask for it: use `sslmode=verify-full`",
            );
        }
        Ok(self)
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
        let mut words = given
            .split(' ')
            .map(|word| (word != "-").then(|| word.to_owned()));
        let mut next = || words.next().flatten();
        let given = UrlOptions {
            mode: next(),
            root: next(),
            binding: next(),
            require_auth: next(),
        };
        Policy::decide(&given, context)
    }

    #[test]
    fn defaults_verify_and_bind() {
        use Encryption::{Always, IfOffered, Never};
        let check = |given: &str, context, encryption, trusted, binding| {
            let policy = decide(given, context).unwrap();
            let found = (policy.encryption, policy.trusted, policy.binding);
            assert_eq!(found, (encryption, trusted, binding), "{given}");
            assert!(policy.methods.only_scram(), "{given}");
        };
        let file = || Trusted::File("ca.pem".into());
        let bound = Binding::Always;
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
            Binding::IfOffered,
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
        assert_eq!(policy.unwrap().binding, Binding::Always);
    }
}
