//! How many secrets survive redaction, and how many look-alikes fall to it.

use memctl_redact::{Clean, redact};

use super::carriers::Carrier;
use super::kinds::{BLOCKS, KEYS, Kind, LATER, PASSWORDS};
use super::look_alikes::{self, LOOK_ALIKES};
use super::templates::{FilledTemplate, Random, fill};

/// The longest piece of a secret that may be left, in characters.
const LEFT: usize = 8;

/// How many carriers each kind of one line goes through; blocks go through all.
const CARRIERS: usize = 6;

/// The label of a block, also in base64, which tells nothing.
const LABELS: [&str; 2] = [
    "-----BEGIN ENCRYPTED PRIVATE KEY-----",
    "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t",
];

/// A secret as some tool prints it.
pub(crate) struct Case {
    pub(crate) kind: &'static str,
    pub(crate) carrier: Carrier,
    pub(crate) text: String,
    pub(crate) secrets: Vec<String>,
    pub(crate) open: String,
    /// Whether this kind was looked at while patterns were written.
    pub(crate) seen: bool,
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (many, kinds) in [
        (CARRIERS, KEYS),
        (CARRIERS, PASSWORDS),
        (Carrier::ALL.len(), BLOCKS),
        (CARRIERS, LATER),
    ] {
        for (name, template) in kinds {
            cases.extend(of_kind((name, template), many));
        }
    }
    cases
}

fn of_kind((name, template): Kind, many: usize) -> Vec<Case> {
    let mut random = Random::new(name);
    let seen = random.clone().below(1 << 16).is_multiple_of(2);
    let first = random.below(Carrier::ALL.len());
    let plain = (many < Carrier::ALL.len()).then_some(Carrier::Plain);
    let others = (0..many).map(|i| Carrier::ALL[(first + i * 7) % Carrier::ALL.len()]);
    plain
        .into_iter()
        .chain(others)
        .filter_map(|carrier| {
            let planted = fill(template, &mut random);
            let text = carrier.carry(&planted, &mut random)?;
            Some(Case {
                kind: name,
                carrier,
                text,
                secrets: planted.secrets,
                open: planted.open,
                seen,
            })
        })
        .collect()
}

/// The first piece of a secret that is still in a text.
pub(crate) fn left<'a>(text: &str, secrets: &'a [String], open: &str) -> Option<&'a str> {
    let pieces = secrets.iter().flat_map(|secret| {
        secret.lines().flat_map(|line| {
            let size = LEFT.min(line.len());
            (0..=line.len() - size).filter_map(move |at| line.get(at..at + size))
        })
    });
    let told = |piece: &&str| {
        let label = piece.contains("----")
            || piece.contains("BEGIN")
            || piece.contains("PRIVATE")
            || LABELS.iter().any(|label| label.contains(*piece));
        !label && !piece.is_empty() && !open.contains(*piece)
    };
    pieces.filter(told).find(|piece| text.contains(*piece))
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * f64::from(u32::try_from(part).unwrap()) / f64::from(u32::try_from(whole).unwrap())
}

#[test]
fn secrets_of_every_kind_go_in_every_form() {
    let cases = cases();
    let mut rates = Vec::new();
    for seen in [true, false] {
        let half: Vec<&Case> = cases.iter().filter(|case| case.seen == seen).collect();
        let mut failures = Vec::new();
        for case in &half {
            let text = redact(&case.text).text.into_owned();
            if let Some(piece) = left(&text, &case.secrets, &case.open) {
                failures.push(format!(
                    "{} as {:?}: `{piece}` in {text:?}",
                    case.kind, case.carrier
                ));
            }
        }
        rates.push((half.len(), failures));
    }
    assert!(cases.len() >= 300, "{}", cases.len());
    let shown = std::env::var("SECRETS_SHOW").unwrap_or_default();
    for (which, (all, failures)) in ["seen", "unseen"].iter().zip(&rates) {
        println!(
            "{which}: {} of {all} survive ({:.2} %)",
            failures.len(),
            percent(failures.len(), *all)
        );
        if shown.contains(which) {
            println!("{}", failures.join("\n"));
        }
    }
    for (all, failures) in rates {
        assert!(failures.len() * 50 <= all, "{failures:#?}");
    }
}

#[test]
fn look_alikes_stay() {
    let mut all = 0;
    let mut failures = Vec::new();
    for (i, template) in LOOK_ALIKES.iter().chain(look_alikes::LATER).enumerate() {
        let mut random = Random::new(template);
        for carrier in [
            Carrier::Plain,
            Carrier::ALL[1 + i % (Carrier::ALL.len() - 4)],
        ] {
            let FilledTemplate { text, .. } = fill(template, &mut random);
            let planted = FilledTemplate {
                text,
                secrets: Vec::new(),
                open: String::new(),
            };
            let Some(text) = carrier.carry(&planted, &mut random) else {
                continue;
            };
            all += 1;
            let redacted = redact(&text);
            if redacted.text != text {
                failures.push(format!(
                    "{carrier:?}: {:?} in {:?}",
                    redacted.found, redacted.text
                ));
            }
        }
    }
    assert!(all >= 300, "{all}");
    println!(
        "{} of {all} look-alikes fall ({:.2} %)",
        failures.len(),
        percent(failures.len(), all)
    );
    if std::env::var_os("SECRETS_SHOW").is_some() {
        println!("{}", failures.join("\n"));
    }
    assert!(failures.len() * 100 <= all, "{failures:#?}");
}

/// Every piece of the secrets that redaction of the whole text hides.
fn hidden(case: &Case, whole: &str) -> Vec<String> {
    let lines = case.secrets.iter().flat_map(|secret| secret.lines());
    lines
        .filter(|line| line.len() >= LEFT && !line.contains("----"))
        .flat_map(|line| (0..=line.len() - LEFT).filter_map(|at| line.get(at..at + LEFT)))
        .filter(|piece| !whole.contains(*piece) && !case.open.contains(*piece))
        .map(str::to_owned)
        .collect()
}

#[test]
fn no_cut_of_a_clean_text_shows_what_the_whole_hides() {
    for case in cases() {
        let clean = Clean::of(&case.text);
        let hidden = hidden(&case, clean.as_str());
        let mut random = Random::new(&case.text);
        for _ in 0..8 {
            let (head, tail) = (random.below(clean.as_str().len()), random.below(300));
            for part in [
                clean.head(head),
                clean.tail(tail),
                &clean.ends(head, tail),
                &clean.cut(head),
            ] {
                // Looked at once more, as everything is before it is stored and shown.
                let part = redact(part).text.into_owned();
                let piece = hidden.iter().find(|piece| part.contains(*piece));
                assert_eq!(piece, None, "{} as {:?}: {part:?}", case.kind, case.carrier);
            }
        }
    }
}

#[test]
fn blocks_that_a_host_has_cut_are_hidden_to_the_cut() {
    let blocks: Vec<Case> = cases()
        .into_iter()
        .filter(|case| case.kind.starts_with("pem ") && !case.carrier.is_cut())
        .filter(|case| BLOCKS.iter().any(|(kind, _)| *kind == case.kind))
        .collect();
    assert!(blocks.len() > 100);
    for case in blocks {
        let clean = redact(&case.text).text.into_owned();
        let hidden = hidden(&case, &clean);
        let begins = case.text.find("-----BEGIN").unwrap();
        let mut random = Random::new(&case.text);
        for _ in 0..12 {
            let at = begins + 40 + random.below(400);
            let at = (at..=case.text.len())
                .find(|at| case.text.is_char_boundary(*at))
                .unwrap();
            let (head, tail) = case.text.split_at(at);
            for cut in [
                head.to_owned(),
                format!("{head}\n… [truncated]"),
                format!("{head}..."),
                format!("… [truncated]\n{tail}"),
                format!("[...]\n{tail}"),
            ] {
                let text = redact(&cut).text.into_owned();
                let piece = hidden.iter().find(|piece| text.contains(*piece));
                assert_eq!(piece, None, "{} as {:?}: {text}", case.kind, case.carrier);
            }
        }
    }
}
