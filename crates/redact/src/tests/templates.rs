//! Texts with random parts, built at test run time, so that no file contains a key.
//!
//! `{a36}` is 36 letters and digits; `«` and `»` enclose a secret. The generator is seeded, so a
//! template always yields the same text.

/// Small generator (xorshift): the same seed yields the same text.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: &str) -> Self {
        // FNV hash, which gives each name its own sequence.
        let hash = seed.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
        Self(hash | 1)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit.max(1)
    }

    fn of(&mut self, alphabet: &str, length: usize) -> String {
        let alphabet = alphabet.as_bytes();
        (0..length)
            .map(|_| char::from(alphabet[self.below(alphabet.len())]))
            .collect()
    }
}

const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &str = "0123456789";
const HEX: &str = "0123456789abcdef";

/// Text and its secrets.
#[derive(Debug, Clone)]
pub(crate) struct FilledTemplate {
    pub text: String,
    pub secrets: Vec<String>,
    /// Text outside the secrets.
    pub open: String,
}

/// Fills in a template.
pub(crate) fn fill(template: &str, random: &mut Random) -> FilledTemplate {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, inside)) = rest.split_once('{') {
        text.push_str(before);
        let end = inside.find('}').filter(|end| is_part(&inside[..*end]));
        let Some(end) = end else {
            text.push('{');
            rest = inside;
            continue;
        };
        text.push_str(&part(&inside[..end], random));
        rest = &inside[end + 1..];
    }
    text.push_str(rest);
    unmarked(&text)
}

/// Text without its marks, and the parts between them.
fn unmarked(marked: &str) -> FilledTemplate {
    let mut planted = FilledTemplate {
        text: String::new(),
        secrets: Vec::new(),
        open: String::new(),
    };
    let mut rest = marked;
    while let Some((before, inside)) = rest.split_once('«') {
        let (secret, after) = inside.split_once('»').expect("a mark is closed");
        planted.text.push_str(before);
        planted.open.push_str(before);
        planted.text.push_str(secret);
        planted.secrets.push(secret.to_owned());
        rest = after;
    }
    planted.text.push_str(rest);
    planted.open.push_str(rest);
    planted
}

fn is_part(inside: &str) -> bool {
    inside == "uuid"
        || inside.starts_with("pem ")
        || inside.starts_with("b64 ")
        || (inside.len() >= 2
            && inside.starts_with(|c: char| "alLhHUdwbpPxmA".contains(c))
            && inside[1..].bytes().all(|b| b.is_ascii_digit()))
}

fn part(inside: &str, random: &mut Random) -> String {
    if inside == "uuid" {
        let lengths = [8, 4, 4, 4, 12];
        return lengths.map(|length| random.of(HEX, length)).join("-");
    }
    if let Some(label) = inside.strip_prefix("pem ") {
        return pem(label, random);
    }
    if let Some(words) = inside.strip_prefix("b64 ") {
        let number = random.of(DIGITS, 3);
        let tail = random.of(LOWER, 7);
        return base64(format!("{words}{tail}{number}").as_bytes());
    }
    let length: usize = inside[1..].parse().unwrap();
    let alphabet = match inside.as_bytes()[0] {
        b'a' => [LOWER, UPPER, DIGITS].concat(),
        b'A' => [UPPER, DIGITS].concat(),
        b'l' => [LOWER, DIGITS].concat(),
        b'L' => LOWER.to_owned(),
        b'h' => HEX.to_owned(),
        b'H' => HEX.to_ascii_uppercase(),
        b'U' => [UPPER, "234567"].concat(),
        b'd' => DIGITS.to_owned(),
        b'w' => [LOWER, UPPER, DIGITS, "_-"].concat(),
        b'b' => [LOWER, UPPER, DIGITS, "+/"].concat(),
        b'x' => "x".to_owned(),
        // Password typed by a person: letters, digits, a sign.
        b'p' => {
            let head = random.of(LOWER, length.saturating_sub(4));
            return format!(
                "{}{head}{}{}",
                random.of(UPPER, 1),
                random.of("23456789", 2),
                random.of("!#+?", 1)
            );
        }
        // Password from a password manager.
        b'P' => {
            let head = random.of(&[LOWER, UPPER].concat(), 3);
            let signs = [LOWER, UPPER, DIGITS, "!#%+-.=?@^_~"].concat();
            return format!(
                "{head}{}{}",
                random.of(DIGITS, 1),
                random.of(&signs, length.saturating_sub(4))
            );
        }
        // Lower-case letters and two digits.
        b'm' => {
            return format!(
                "{}{}",
                random.of(LOWER, length.saturating_sub(2)),
                random.of("23456789", 2)
            );
        }
        _ => String::new(),
    };
    // A run without a digit is rare, but would make the test fail at random.
    let mut made = random.of(&alphabet, length);
    while length >= 16
        && alphabet.contains('0')
        && !made.bytes().skip(1).take(8).any(|b| b.is_ascii_digit())
    {
        made = random.of(&alphabet, length);
    }
    made
}

/// PEM block with seven lines.
fn pem(label: &str, random: &mut Random) -> String {
    let alphabet = [LOWER, UPPER, DIGITS, "+/"].concat();
    let mut lines: Vec<String> = (0..6).map(|_| random.of(&alphabet, 64)).collect();
    lines.push(format!("{}==", random.of(&alphabet, 30)));
    let dashes = "-----";
    format!(
        "{dashes}BEGIN {label}{dashes}\n{}\n{dashes}END {label}{dashes}",
        lines.join("\n")
    )
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    let alphabet = [UPPER, LOWER, DIGITS, "+/"].concat().into_bytes();
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let at = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for i in 0..4 {
            let digit = (bits >> (18 - 6 * i) & 63) as usize;
            out.push(if i <= chunk.len() {
                char::from(alphabet[digit])
            } else {
                '='
            });
        }
    }
    out
}
