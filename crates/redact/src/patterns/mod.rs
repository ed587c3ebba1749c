//! Patterns for secrets, as data: each has a description, a detection method, and positive and
//! negative samples. A test runs every sample.
//!
//! - `vendors`: keys with a vendor prefix.
//! - `names`: values made secret by the name before them.
//! - `structures`: secrets recognised by their structure: blocks, headers, addresses, documents.
//! - `commands`: arguments of programs.
//!
//! Samples are templates (`templates`), so that no file contains a key.

mod commands;
mod names;
mod structures;
mod vendors;

use super::class::Class;
use super::shapes::{Part, Set};

/// One kind of secret and its detection.
#[derive(Debug)]
pub struct Pattern {
    /// Kind in the marker `[REDACTED:kind]`.
    pub kind: &'static str,
    /// Description for people.
    pub finds: &'static str,
    /// Texts of two bytes or more; every such secret contains one of them.
    pub(super) anchors: &'static [&'static str],
    pub(super) how: Detector,
    /// Templates of texts; the marked part must be redacted.
    pub yes: &'static [&'static str],
    /// Templates of texts that must stay unchanged.
    pub no: &'static [&'static str],
}

/// Detection method at an anchor.
#[derive(Debug, Clone, Copy)]
pub(super) enum Detector {
    /// Key that begins with the anchor, followed by these parts.
    Key(&'static [Part]),
    /// Key around the anchor: a run of a set with minimum and maximum length, the anchor, these
    /// parts.
    Around(Set, usize, usize, &'static [Part]),
    /// Value of a name that contains the anchor.
    Name(Class),
    /// Value of a camel-case name that ends in the anchor, such as `deployKey`. Case matters.
    Camel,
    /// Redaction marker, which is skipped.
    Marker,
    Private,
    KeyBlock,
    KeyBlockTail,
    /// Base64 lines below the line of the anchor.
    LinesBelow,
    WebToken,
    /// Base64 of a text that contains a key or a password.
    Encoded,
    /// Member of a JSON Web Key.
    KeyMember,
    Address,
    Bearer,
    Basic,
    Cookie,
    Telegram,
    Discord,
    AzureClient,
    VaultLegacy,
    /// `"auth": "…"`: base64 of name and password.
    Auth,
    /// Values of a Kubernetes Secret.
    SecretData,
    /// `host:port:database:user:password`.
    PgPass,
    /// `IDENTIFIED BY '…'`.
    Sql,
    /// `NetworkCredential("name", "…")`.
    SecondArgument,
    /// Forty characters after an AWS access key.
    BehindKey,
    /// Answer of an `expect` script to a password prompt.
    Expect,
    /// Text that `echo` pipes into a program that reads a password.
    Piped,
    /// Arguments of a program: required words, one of which must be present, and the secret
    /// arguments.
    Command(&'static [&'static str], &'static [Flag]),
}

/// Position of a secret argument.
#[derive(Debug, Clone, Copy)]
pub(super) enum Flag {
    /// `-p X`; for a long flag also `--flag=X`.
    Next(&'static str),
    /// `-pX`.
    Glued(&'static str),
    /// `-u name:X`, with this separator.
    Behind(&'static str, u8),
    /// `pass:X` as any argument.
    Prefix(&'static str),
    /// Last argument that is not an option, after at least this number of others.
    Last(usize),
    /// Last argument, after at most one other.
    Alone,
}

impl Detector {
    /// Returns true if the anchors match regardless of ASCII case.
    pub(super) const fn folds(self) -> bool {
        matches!(
            self,
            Self::Name(_)
                | Self::Bearer
                | Self::Basic
                | Self::Cookie
                | Self::Private
                | Self::SecretData
                | Self::Sql
                | Self::LinesBelow
        )
    }
}

/// All patterns. For equal anchors the earlier pattern takes precedence.
pub fn patterns() -> impl DoubleEndedIterator<Item = &'static Pattern> {
    let tables: [&'static [Pattern]; 4] = [
        structures::STRUCTURES,
        &vendors::VENDORS,
        names::NAMES,
        commands::COMMANDS,
    ];
    tables.into_iter().flatten()
}

const fn pattern(
    kind: &'static str,
    finds: &'static str,
    anchors: &'static [&'static str],
    how: Detector,
    yes: &'static [&'static str],
    no: &'static [&'static str],
) -> Pattern {
    Pattern {
        kind,
        finds,
        anchors,
        how,
        yes,
        no,
    }
}

#[cfg(test)]
mod tests {
    use super::super::redact;
    use super::super::templates::{Random, fill};
    use super::*;

    /// Checks every sample of every pattern five times, each with different random parts.
    fn each(
        of: impl Fn(&Pattern) -> &'static [&'static str],
        check: impl Fn(&Pattern, &str, &[String]),
    ) {
        for pattern in patterns() {
            for template in of(pattern) {
                let mut random = Random::new(template);
                for _ in 0..5 {
                    let planted = fill(template, &mut random);
                    check(pattern, &planted.text, &planted.secrets);
                }
            }
        }
    }

    #[test]
    fn samples_of_secrets_go_and_what_stands_around_them_stays() {
        each(
            |pattern| pattern.yes,
            |pattern, text, secrets| {
                let redacted = redact(text);
                assert!(
                    redacted.found.contains(&pattern.kind),
                    "{}: {:?} from {text}",
                    pattern.kind,
                    redacted
                );
                let mut rest = redacted.text.as_ref();
                let mut from = text;
                for secret in secrets {
                    assert!(!redacted.text.contains(secret), "{redacted:?} from {text}");
                    let (before, after) = from.split_once(secret.as_str()).unwrap();
                    assert!(rest.starts_with(before), "{redacted:?} from {text}");
                    let marker = rest[before.len()..].find(']');
                    let Some(marker) = marker else {
                        panic!("{redacted:?} from {text}");
                    };
                    rest = &rest[before.len() + marker + 1..];
                    from = after;
                }
                assert_eq!(rest, from, "{redacted:?} from {text}");
            },
        );
    }

    #[test]
    fn samples_of_look_alikes_stay() {
        each(
            |pattern| pattern.no,
            |_, text, _| assert_eq!(redact(text).text, text),
        );
    }

    #[test]
    fn every_pattern_has_anchors_words_and_samples() {
        for pattern in patterns() {
            let name = pattern.kind;
            assert!(!pattern.finds.is_empty(), "{name}");
            assert!(!pattern.anchors.is_empty(), "{name}");
            assert!(pattern.anchors.iter().all(|a| a.len() >= 2), "{name}");
            let marks = matches!(pattern.how, Detector::Marker);
            assert!(marks || !pattern.yes.is_empty(), "{name}: no secret");
            assert!(!pattern.no.is_empty(), "{name}: no look-alike");
        }
    }
}
