//! Explanations of errors of the shared store.

use crate::model::error::{Explain, Explanation, Kind};
use crate::remote::{self, Refusal};

impl Explain for remote::Error {
    fn explain(&self) -> Explanation {
        let remote = |hint: &str| (Kind::Remote, Some(hint.to_owned()));
        match self {
            Self::Url(_) => (
                Kind::Input,
                Some(
                    "write it as postgres://user:password@host:5432/name?sslmode=verify-full"
                        .into(),
                ),
            ),
            Self::Name(_) => (
                Kind::Input,
                Some("memctl remote user add ann --url ADMIN_URL".into()),
            ),
            Self::UserId(_) => (
                Kind::Input,
                Some("memctl remote status shows the id of a login".into()),
            ),
            Self::Exists(_) => (
                Kind::Input,
                Some("choose another name, or remove it on the server: drop role".into()),
            ),
            Self::Tls { .. } => remote(
                "enable TLS on the server (ssl = on), and give the issuer of its certificate in the URL: \
                 sslrootcert=FILE",
            ),
            Self::Login { refusal, .. } => remote(of_refusal(*refusal)),
            Self::Locked { holder, .. } => remote(&match holder {
                Some(holder) => format!(
                    "wait for that session, or end it as an administrator: select pg_terminate_backend({})",
                    holder.process
                ),
                None => "wait for the other session, or end it".to_owned(),
            }),
            Self::Unreachable { .. } => remote("check host and port, and that the server runs"),
            Self::Refused { .. } => remote("check user and password in the URL"),
            Self::Unsuitable { .. } => remote("install PostgreSQL 15 and pgvector 0.8 or newer"),
            Self::Foreign(_) | Self::Older { .. } => remote("memctl remote init --url ADMIN_URL"),
            Self::Taken { .. } => remote("use a separate database, or rename the existing object"),
            Self::Changed { .. } | Self::Newer { .. } => remote("install the newest memctl"),
            Self::Pooled { .. } => remote(
                "use the pooler's session mode, or connect to the server itself: memctl remote check",
            ),
            Self::Statement { denied: true, .. } => remote(
                "use the URL of an administrator, or of a user, whose role has the privilege",
            ),
            Self::Statement { .. } | Self::Vectors { .. } => (Kind::Remote, None),
            Self::Unsafe { .. } => remote("memctl remote check"),
            Self::Nobody(_) => remote("memctl remote user add NAME --url ADMIN_URL"),
            Self::OtherDatabase { .. } => remote(
                "set MEMCTL_DATABASE_URL to the URL used for `remote join`, or: memctl remote leave",
            ),
            Self::NoMemory(name) => remote(&format!(
                "memctl remote leave, then memctl remote join {name}"
            )),
            Self::MemoryName(_) => (Kind::Input, Some("memctl remote join support".into())),
            Self::Joined { .. } => (Kind::Usage, Some("memctl remote leave".into())),
            Self::BothFull { .. } => (
                Kind::Input,
                Some(
                    "join from an empty directory: memctl remote join NAME --root NEW_DIRECTORY"
                        .into(),
                ),
            ),
            Self::Shared(_) => (Kind::Input, Some("choose another name".into())),
            Self::SharedAs(own) => (
                Kind::Input,
                Some(format!("keep the name: memctl remote join {own}")),
            ),
            Self::Busy { .. } => remote("wait for the other program, or end it"),
            Self::Overtaken(_) => remote("run the command again"),
            Self::Unfit { .. } => (Kind::Input, Some("memctl doctor".into())),
            Self::NoAnswer => remote("check that the server runs: memctl remote check"),
            Self::Shrinks(_) => (
                Kind::Usage,
                Some("memctl sync --dry-run, then memctl sync --yes".into()),
            ),
            Self::Store(error) => error.explain(),
        }
    }
}

/// Returns the hint for a login that this client refused.
fn of_refusal(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::ClearText => {
            "use scram-sha-256 in pg_hba.conf of the server; to send it nevertheless, add to the URL: \
             sslmode=verify-full&require_auth=password"
        }
        Refusal::Md5 => {
            "use scram-sha-256 on the server (password_encryption, then set the password again); to go on \
             nevertheless, add to the URL: sslmode=verify-full&require_auth=md5"
        }
        Refusal::Unbound => {
            "connect to the server itself; where a pooler ends TLS, trust it by its certificate: \
             sslmode=verify-full&channel_binding=prefer"
        }
        Refusal::Unproven => {
            "set a password method (scram-sha-256) in pg_hba.conf of the server; to trust it nevertheless, \
             add to the URL: require_auth=none"
        }
        Refusal::Scram => "add scram-sha-256 to `require_auth` in the URL",
        Refusal::Unknown => "use scram-sha-256 in pg_hba.conf of the server",
        Refusal::Rounds | Refusal::Garbled => {
            "check host and port: the server does not follow the PostgreSQL protocol"
        }
    }
}
