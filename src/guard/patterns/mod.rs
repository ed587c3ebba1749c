//! What counts as a secret, as data: one table of patterns, each with what it finds, how, and samples
//! of both kinds. A test runs every sample.
//!
//! - `vendors`: keys with a prefix of their own.
//! - `names`: values that the name in front of them makes secret.
//! - `structures`: what is told by how a text is built: blocks, headers, addresses, documents.
//! - `commands`: arguments of programs.
//!
//! Samples are templates (`templates`), so that no key lies in a file.

mod commands;
mod names;
mod structures;
mod vendors;

use super::shapes::{Part, Set};
use super::values::Class;

/// One kind of secret, and how it is told.
#[derive(Debug)]
pub struct Pattern {
    /// Written in the place of what is found: `[REDACTED:kind]`.
    pub kind: &'static str,
    /// What it finds, in words.
    pub finds: &'static str,
    /// Texts of two characters or more, one of which each such secret has.
    pub(super) anchors: &'static [&'static str],
    pub(super) how: How,
    /// Templates of texts whose marked part goes.
    pub yes: &'static [&'static str],
    /// Templates of texts that stay.
    pub no: &'static [&'static str],
}

/// How a secret is read where an anchor stands.
#[derive(Debug, Clone, Copy)]
pub(super) enum How {
    /// The anchor is the beginning of a key, and this is the rest.
    Key(&'static [Part]),
    /// The anchor stands inside of a key: so many characters of a set before it, and this behind it.
    Around(Set, usize, usize, &'static [Part]),
    /// The anchor is the word in a name.
    Name(Class),
    /// As above, and capitals matter: the last word of a name such as `deployKey`.
    Camel,
    /// A marker that stands for something that was found before.
    Marker,
    Private,
    KeyBlock,
    KeyBlockTail,
    /// Lines of base64 behind the line of the anchor.
    LinesBelow,
    WebToken,
    /// Base64 of a text that holds a key or a password.
    Encoded,
    /// A member of a JSON Web Key.
    KeyMember,
    Address,
    Bearer,
    Basic,
    Cookie,
    Telegram,
    Discord,
    AzureClient,
    VaultOld,
    /// `"auth": "…"`: base64 of a name and a password.
    Auth,
    /// The values of a Secret of Kubernetes.
    SecretData,
    /// `host:port:database:user:password`.
    PgPass,
    /// `IDENTIFIED BY '…'`.
    Sql,
    /// `NetworkCredential("name", "…")`.
    SecondArgument,
    /// Forty characters behind an access key of AWS.
    BehindKey,
    /// What a script of `expect` answers to a question for a password.
    Expect,
    /// The text that `echo` hands to a program that reads a password.
    Piped,
    /// Arguments of a program: words one of which has to be among them, and where a secret stands.
    Command(&'static [&'static str], &'static [Flag]),
}

/// Where an argument that is secret stands.
#[derive(Debug, Clone, Copy)]
pub(super) enum Flag {
    /// `-p X`, and `--flag=X` of a long one.
    Next(&'static str),
    /// `-pX`.
    Glued(&'static str),
    /// `-u name:X`, with this character between.
    Behind(&'static str, u8),
    /// `pass:X`, wherever it stands.
    Prefix(&'static str),
    /// The last argument, where so many stand before it.
    Last(usize),
    /// The last argument, where at most one stands before it and nothing behind.
    Alone,
}

impl How {
    /// Whether capitals do not matter in the anchors.
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

/// Every pattern. Where two have an anchor in common, the earlier one is tried first.
pub fn patterns() -> impl DoubleEndedIterator<Item = &'static Pattern> {
    let tables = [
        structures::STRUCTURES,
        vendors::VENDORS,
        names::NAMES,
        commands::COMMANDS,
    ];
    tables.into_iter().flatten()
}

const fn key(
    kind: &'static str,
    finds: &'static str,
    anchors: &'static [&'static str],
    body: &'static [Part],
    yes: &'static [&'static str],
    no: &'static [&'static str],
) -> Pattern {
    pattern(kind, finds, anchors, How::Key(body), yes, no)
}

const fn pattern(
    kind: &'static str,
    finds: &'static str,
    anchors: &'static [&'static str],
    how: How,
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

    /// Every sample of every pattern, five times with other random parts.
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
            let marks = matches!(pattern.how, How::Marker);
            assert!(marks || !pattern.yes.is_empty(), "{name}: no secret");
            assert!(!pattern.no.is_empty(), "{name}: no look-alike");
        }
    }
}
