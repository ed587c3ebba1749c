//! What a rule says, taken apart: what it is for, what it is against, and when.
//!
//! `Avoid enums; use maps instead` is against `enum` and for `map`; `Prefer A over B` is for A and
//! against B; `never delete comments` is for `comment`, because deleting is against. Similarity
//! alone cannot tell a duplicate from a contradiction, and this can.
//!
//! Word lists, English. A rule in another language has one claim, for all of its words.
//!
//! Deliberately absent: comparing two rules.

use std::collections::BTreeSet;

use crate::search::words;

/// Words, as the search stems them; names of code as they are written, in lower case.
pub(super) type Terms = BTreeSet<String>;

/// For or against something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stance {
    For,
    Against,
}

impl Stance {
    pub(super) const fn opposite(self) -> Self {
        match self {
            Self::For => Self::Against,
            Self::Against => Self::For,
        }
    }
}

/// One demand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) stance: Stance,
    /// What is demanded: the things that stand before the first preposition, each by itself.
    pub(super) things: Vec<Terms>,
    /// The circumstances: what stands behind it.
    pub(super) about: Terms,
    /// Where or for what it holds: what stands behind `for`, `in`, `when` and the like.
    pub(super) scope: Terms,
    /// Whether it leaves exceptions open.
    pub(super) exception: bool,
}

impl Claim {
    fn new(stance: Stance) -> Self {
        Self {
            stance,
            things: vec![Terms::new()],
            about: Terms::new(),
            scope: Terms::new(),
            exception: false,
        }
    }

    /// All things together.
    pub(super) fn whole(&self) -> Terms {
        self.things.iter().flatten().cloned().collect()
    }

    /// All things and their circumstances.
    pub(super) fn all(&self) -> Terms {
        let mut all = self.whole();
        all.extend(self.about.iter().cloned());
        all.extend(self.scope.iter().cloned());
        all
    }

    fn is_empty(&self) -> bool {
        self.things.iter().all(Terms::is_empty) && self.about.is_empty() && self.scope.is_empty()
    }
}

/// Words that turn a demand into its opposite.
const AGAINST: &[&str] = &[
    "never", "don't", "dont", "not", "no", "avoid", "avoiding", "without", "minimize", "minimise",
    "stop", "refrain", "cannot", "can't", "mustn't", "shouldn't", "isn't", "aren't", "forbid",
    "forbidden", "prohibit", "prohibited", "disallow", "ban", "banned", "sparingly", "doesn't",
    "won't", "nor",
];
/// Verbs that are against what they are about, and turn round what stands before them.
const UNDOING: &[&str] = &[
    "delete", "deleting", "remove", "removing", "drop", "dropping", "omit", "omitting", "skip",
    "skipping", "exclude", "excluding", "disable", "disabling", "change", "changing", "modify",
    "modifying", "alter", "altering", "ignore", "ignoring", "hide", "hiding", "suppress",
];
/// Words behind which the other side of a choice stands.
const RATHER: &[&[&str]] = &[
    &["instead", "of"],
    &["rather", "than"],
    &["as", "opposed", "to"],
    &["in", "place", "of"],
    &["over"],
];
/// Words behind which an exception stands.
const EXCEPT: &[&str] = &["unless", "except", "outside", "until"];
/// Words that begin a demand, so that a comma before them ends the one before.
const BEGINS: &[&str] = &[
    "use", "prefer", "avoid", "never", "don't", "dont", "not", "no", "always", "ensure", "keep",
    "only", "do", "write", "choose", "without", "define", "include", "add", "put", "place", "must",
];
/// Words behind which the place stands where something holds.
const PLACES: &[&str] = &[
    "for", "in", "when", "whenever", "where", "on", "if", "during", "while", "inside", "within",
    "under", "across", "before", "after",
];
/// Words behind which other circumstances stand.
const CIRCUMSTANCES: &[&str] = &[
    "with", "by", "via", "as", "at", "of", "that", "which", "through", "between", "plus", "so",
    "because", "like", "using", "since", "per", "than", "such", "who", "whose", "from", "to",
    "into",
];
/// Words that carry a demand and are not what it is about.
const CARRIERS: &[&str] = &[
    "use", "uses", "using", "used", "prefer", "preferred", "choose", "favor", "favour", "keep",
    "keeping", "make", "sure", "ensure", "always", "write", "create", "creating", "generate",
    "add", "append", "include", "provide", "do", "does", "must", "should", "please", "need",
    "needs", "want", "let", "let's", "lets", "proper", "properly", "appropriate", "directly",
    "explicitly", "specifically", "strictly", "proactively", "wherever", "everywhere", "possible",
    "all", "every", "each", "exist", "existing", "any", "only", "instead", "just", "also",
    "really", "very", "have", "has", "be", "is", "are", "we", "you", "i", "old", "unnecessary",
    "necessary", "update", "updated", "up-to-date", "put", "alright", "ok", "okay", "actually",
    "the", "a", "an", "it", "them", "their", "its", "this", "these", "those", "ought", "own",
    "place", "set", "never",
];

/// Takes a rule apart. Never empty for a text that has a word in it.
pub(super) fn claims(rule: &str) -> Vec<Claim> {
    let mut out: Vec<Claim> = Vec::new();
    let clauses = clauses(rule);
    for (i, clause) in clauses.iter().enumerate() {
        if clause.is_title() && i + 1 < clauses.len() {
            continue;
        }
        // In lists of mistakes, `Use A — use B` means B and not A.
        if clause.after_dash
            && clause.begins_with("use")
            && let [only] = &mut out[..]
        {
            only.stance = Stance::Against;
        }
        Reader::read(&clause.tokens, &mut out);
    }
    out.retain(|claim| !claim.is_empty());
    if out.is_empty() {
        let mut claim = Claim::new(Stance::For);
        claim.things = vec![words(rule).into_iter().collect()];
        out.push(claim);
    }
    out
}

/// The numbers that a text demands, as they are written, in their order.
pub(super) fn numbers(rule: &str) -> Vec<String> {
    rule.split(|c: char| !c.is_alphanumeric() && c != '.')
        .map(|token| token.trim_matches('.'))
        .filter(|token| !token.is_empty() && token.chars().all(|c| c.is_ascii_digit() || c == '.'))
        .map(str::to_owned)
        .collect()
}

/// A word of a rule.
#[derive(Debug, Clone)]
struct Token {
    /// In lower case, without the punctuation around it.
    word: String,
    /// Whether it was marked as code or quoted: then it is a name, whatever it looks like.
    is_name: bool,
    /// Whether a comma follows.
    comma: bool,
}

/// Words that belong together.
#[derive(Debug, Default)]
struct Clause {
    tokens: Vec<Token>,
    after_dash: bool,
    /// Whether a colon follows.
    before_colon: bool,
}

impl Clause {
    fn begins_with(&self, word: &str) -> bool {
        self.tokens.first().is_some_and(|token| token.word == word)
    }

    /// Whether it only names what the next one is about.
    fn is_title(&self) -> bool {
        self.before_colon && !self.tokens.iter().any(Token::is_demand)
    }
}

/// The clauses of a text: what stands between full stops, semicolons, colons, dashes and brackets. A
/// bracket counts only where it demands something; otherwise it holds examples.
fn clauses(text: &str) -> Vec<Clause> {
    let mut out = Vec::new();
    let mut now = Clause::default();
    let mut bracket: Option<Clause> = None;
    let mut quoted: Option<char> = None;
    for raw in text.split_whitespace() {
        if matches!(raw, "-" | "–" | "—" | "--") {
            close(&mut now, &mut out);
            now.after_dash = true;
            continue;
        }
        if raw.starts_with('(') {
            bracket = Some(Clause::default());
        }
        let is_name = in_quotes(raw, &mut quoted);
        let end = raw.trim_end_matches(['`', '"', '”', '*', ')', ']']);
        let into = bracket.as_mut().unwrap_or(&mut now);
        for part in choices(raw) {
            let word = part
                .trim_matches(|c: char| !(c.is_alphanumeric() || (is_name && c == '_')))
                .replace('’', "'")
                .to_lowercase();
            if !word.is_empty() {
                into.tokens.push(Token {
                    word,
                    is_name,
                    comma: end.ends_with(','),
                });
            }
        }
        if raw.contains(')')
            && let Some(inside) = bracket.take()
            && inside.tokens.iter().any(Token::is_demand)
        {
            close(&mut now, &mut out);
            out.push(inside);
        }
        if bracket.is_none() && end.ends_with(['.', '!', '?', ';', ':']) && !is_abbreviation(end) {
            now.before_colon = end.ends_with(':');
            close(&mut now, &mut out);
        }
    }
    now.tokens
        .extend(bracket.into_iter().flat_map(|inside| inside.tokens));
    close(&mut now, &mut out);
    out
}

fn close(now: &mut Clause, out: &mut Vec<Clause>) {
    if !now.tokens.is_empty() {
        out.push(std::mem::take(now));
    }
}

/// Whether a word stands in quotes, and keeps track of them.
fn in_quotes(raw: &str, open: &mut Option<char>) -> bool {
    let inner = raw.trim_start_matches(['(', '*', '[']);
    let mut rest = inner;
    if open.is_none() {
        *open = match inner.chars().next() {
            Some('“') => Some('”'),
            mark => mark.filter(|c| matches!(c, '`' | '"')),
        };
        rest = inner
            .get(inner.chars().next().map_or(0, char::len_utf8)..)
            .unwrap_or_default();
    }
    let Some(mark) = *open else {
        return false;
    };
    if rest.contains(mark) {
        *open = None;
    }
    true
}

/// `pip/conda` are two words; a path is one.
fn choices(raw: &str) -> impl Iterator<Item = &str> {
    let is_path =
        raw.starts_with(['/', '`', '.', '~']) || raw.contains("//") || raw.matches('/').count() > 2;
    let separator = if is_path { '\0' } else { '/' };
    raw.split(separator)
}

impl Token {
    /// Whether a demand begins with it.
    fn is_demand(&self) -> bool {
        let word = self.word.as_str();
        !self.is_name && (AGAINST.contains(&word) || BEGINS.contains(&word))
    }
}

fn is_abbreviation(word: &str) -> bool {
    let inner = word.trim_end_matches('.');
    matches!(inner, "e.g" | "i.e" | "etc" | "vs")
}

/// Where the words of a clause go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slot {
    Things,
    About,
    Scope,
    Exception,
    /// `what was asked` names nothing.
    Said,
}

/// Reads a clause from left to right.
struct Reader<'a> {
    claim: Claim,
    slot: Slot,
    /// The condition that the clause begins with: all of its claims hold there.
    condition: Terms,
    out: &'a mut Vec<Claim>,
}

impl<'a> Reader<'a> {
    fn read(tokens: &[Token], out: &'a mut Vec<Claim>) {
        let (condition, mut at) = condition(tokens);
        let mut reader = Self {
            claim: Claim::new(Stance::For),
            slot: Slot::Things,
            condition,
            out,
        };
        while let Some(token) = tokens.get(at) {
            let choice = rather(&tokens[at..]).filter(|_| reader.has_begun());
            if let Some(length) = choice {
                reader.end(reader.claim.stance.opposite());
                at += length;
                continue;
            }
            let last = at.checked_sub(1).and_then(|before| tokens.get(before));
            let may_begin =
                last.is_some_and(|last| last.comma || matches!(last.word.as_str(), "and" | "but"));
            if reader.has_begun()
                && ((may_begin && token.is_demand()) || (token.word == "without" && !token.is_name))
            {
                reader.end(Stance::For);
            }
            reader.take(token);
            at += 1;
        }
        reader.end(Stance::For);
    }

    fn has_begun(&self) -> bool {
        !self.claim.things.iter().all(Terms::is_empty)
    }

    /// Ends a claim; the next one has this stance.
    fn end(&mut self, next: Stance) {
        let mut claim = std::mem::replace(&mut self.claim, Claim::new(next));
        self.slot = Slot::Things;
        claim.things.retain(|things| !things.is_empty());
        if claim.things.is_empty() {
            // `not as a comment`: what stands behind the preposition is what it is about.
            let about = if claim.about.is_empty() {
                std::mem::take(&mut claim.scope)
            } else {
                std::mem::take(&mut claim.about)
            };
            claim.things.push(about);
        }
        claim.scope.extend(self.condition.iter().cloned());
        self.out.push(claim);
    }

    fn take(&mut self, token: &Token) {
        let word = token.word.as_str();
        if matches!(self.slot, Slot::Exception | Slot::Said) {
            // What the exception is makes no difference.
        } else if token.is_name {
            self.put(token);
        } else if EXCEPT.contains(&word) {
            self.claim.exception = true;
            self.slot = Slot::Exception;
        } else if word == "sparingly" {
            self.claim.stance = Stance::Against;
        } else if AGAINST.contains(&word) && self.has_begun() {
            // `Totals must not be rounded` goes on about its subject; behind a preposition or a
            // relative pronoun a negation belongs to what it describes.
            if self.slot == Slot::Things {
                self.claim.stance = self.claim.stance.opposite();
            }
        } else if AGAINST.contains(&word) || (UNDOING.contains(&word) && !self.has_begun()) {
            self.claim.stance = self.claim.stance.opposite();
        } else if PLACES.contains(&word) && self.has_begun() {
            self.slot = Slot::Scope;
        } else if CIRCUMSTANCES.contains(&word) && self.has_begun() {
            self.slot = Slot::About;
        } else if word == "what" {
            self.slot = Slot::Said;
        } else if matches!(word, "or" | "and") {
            self.next_thing();
        } else {
            self.put(token);
        }
        if token.comma {
            self.next_thing();
        }
    }

    fn next_thing(&mut self) {
        if self.slot == Slot::Things
            && self
                .claim
                .things
                .last()
                .is_some_and(|last| !last.is_empty())
        {
            self.claim.things.push(Terms::new());
        }
    }

    fn put(&mut self, token: &Token) {
        let terms = terms(token);
        match (self.slot, self.claim.things.last_mut()) {
            (Slot::Things, Some(last)) => last.extend(terms),
            (Slot::About, _) => self.claim.about.extend(terms),
            (Slot::Scope, _) => self.claim.scope.extend(terms),
            _ => {}
        }
    }
}

/// The condition that a clause begins with, and where the rest begins.
fn condition(tokens: &[Token]) -> (Terms, usize) {
    let opens = tokens
        .first()
        .is_some_and(|first| !first.is_name && PLACES.contains(&first.word.as_str()));
    match tokens.iter().position(|token| token.comma) {
        Some(end) if opens => (tokens[1..=end].iter().flat_map(terms).collect(), end + 1),
        _ => (Terms::new(), 0),
    }
}

/// How many words say that the other side of a choice follows.
fn rather(tokens: &[Token]) -> Option<usize> {
    let says = |words: &&[&str]| {
        let mut both = words.iter().zip(tokens);
        tokens.len() > words.len()
            && both.all(|(word, token)| token.word == *word && !token.is_name)
    };
    RATHER
        .iter()
        .copied()
        .find(|words| says(words))
        .map(<[&str]>::len)
}

/// The terms of a word: none for one that only carries a demand.
fn terms(token: &Token) -> Vec<String> {
    let word = token.word.as_str();
    if token.is_name {
        let bare = word.trim_end_matches("()").trim_start_matches('.');
        return vec![without_ending(bare).to_owned()];
    }
    if CARRIERS.contains(&word) || AGAINST.contains(&word) {
        return Vec::new();
    }
    if word.contains(['-', '_']) {
        return vec![word.to_owned()];
    }
    let numeric = word
        .chars()
        .all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '%'));
    let mut stems = if numeric {
        // Numbers are compared by themselves.
        Vec::new()
    } else {
        words(without_ending(word))
    };
    stems.truncate(1);
    stems
}

/// `readme.md` is the README.
fn without_ending(word: &str) -> &str {
    match word.rsplit_once('.') {
        Some((name, ending))
            if !name.is_empty()
                && (1..=4).contains(&ending.len())
                && ending.chars().all(|c| c.is_ascii_alphanumeric())
                && !name.ends_with(|c: char| c.is_ascii_digit()) =>
        {
            name
        }
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `+a b/c @scope !` for each claim.
    fn read(rule: &str) -> Vec<String> {
        let join = |terms: &Terms| terms.iter().cloned().collect::<Vec<_>>().join(" ");
        claims(rule)
            .iter()
            .map(|claim| {
                let sign = if claim.stance == Stance::For {
                    "+"
                } else {
                    "-"
                };
                let things: Vec<String> = claim.things.iter().map(join).collect();
                let mut out = format!("{sign}{}", things.join("/"));
                if !claim.scope.is_empty() {
                    out.push_str(" @");
                    out.push_str(&join(&claim.scope));
                }
                if claim.exception {
                    out.push('!');
                }
                out
            })
            .collect()
    }

    #[test]
    fn what_a_rule_is_for_and_against() {
        let check = |rule: &str, expected: &[&str]| assert_eq!(read(rule), expected, "{rule}");
        check("Avoid enums; use maps instead.", &["-enum", "+map"]);
        check("Prefer tuples over lists", &["+tupl", "-list"]);
        check("Use `uv`, not pip", &["+uv", "-pip"]);
        check("NEVER delete old logs", &["+log"]);
        check("Never push on Fridays", &["-push @friday"]);
        check("No globals unless unavoidable", &["-global!"]);
        check("Use tabs for Makefiles", &["+tab @makefil"]);
        check(
            "When writing SQL, use upper case",
            &["+case upper @sql write"],
        );
        check(
            "Do not create notes or README.md files",
            &["-note/file readm"],
        );
        check(
            "Use `print` — use `log` and a level",
            &["-print", "+log/level"],
        );
        check("日付はISO形式で。", &["+日付はiso形式で"]);
    }

    #[test]
    fn numbers_are_read_as_written() {
        assert_eq!(numbers("at most 3 items, 1.5 each (v2)"), ["3", "1.5"]);
    }
}
