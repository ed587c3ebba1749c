//! Reads the claims of a clause from left to right. Each word begins a claim, negates it, gives its
//! scope, or is part of its content.

use crate::search::words;

use super::clause::{AGAINST, Token};
use super::{Claim, Stance, Terms};

/// Verbs that oppose their object and negate the claim.
const UNDOING: &[&str] = &[
    "delete", "deleting", "remove", "removing", "drop", "dropping", "omit", "omitting", "skip",
    "skipping", "exclude", "excluding", "disable", "disabling", "change", "changing", "modify",
    "modifying", "alter", "altering", "ignore", "ignoring", "hide", "hiding", "suppress",
];
/// Phrases before the rejected side of a choice.
const RATHER: &[&[&str]] = &[
    &["instead", "of"],
    &["rather", "than"],
    &["as", "opposed", "to"],
    &["in", "place", "of"],
    &["over"],
];
/// Words before an exception.
const EXCEPT: &[&str] = &["unless", "except", "outside", "until"];
/// Words before a scope.
const PLACES: &[&str] = &[
    "for", "in", "when", "whenever", "where", "on", "if", "during", "while", "inside", "within",
    "under", "across", "before", "after",
];
/// Words before other circumstances.
const CIRCUMSTANCES: &[&str] = &[
    "with", "by", "via", "as", "at", "of", "that", "which", "through", "between", "plus", "so",
    "because", "like", "using", "since", "per", "than", "such", "who", "whose", "from", "to",
    "into",
];
/// Words that carry a demand without being part of its content.
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

/// Target for the words of a clause.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slot {
    Things,
    About,
    Scope,
    Exception,
    /// Skipped: `what was asked` names nothing.
    Said,
}

/// State while a clause is read.
struct Reader<'a> {
    claim: Claim,
    slot: Slot,
    /// Initial condition of the clause, part of the scope of all its claims.
    condition: Terms,
    out: &'a mut Vec<Claim>,
}

/// Reads a clause and appends its claims to `out`.
pub(super) fn read_clause(tokens: &[Token], out: &mut Vec<Claim>) {
    let (condition, mut at) = condition(tokens);
    let mut reader = Reader {
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

impl Reader<'_> {
    fn has_begun(&self) -> bool {
        !self.claim.things.iter().all(Terms::is_empty)
    }

    /// Ends the current claim and begins one with the stance `next`.
    fn end(&mut self, next: Stance) {
        let mut claim = std::mem::replace(&mut self.claim, Claim::new(next));
        self.slot = Slot::Things;
        claim.things.retain(|things| !things.is_empty());
        if claim.things.is_empty() {
            // `not as a comment`: the words after the preposition are the content.
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
            // The content of an exception is ignored.
        } else if token.is_name {
            self.put(token);
        } else if EXCEPT.contains(&word) {
            self.claim.exception = true;
            self.slot = Slot::Exception;
        } else if word == "sparingly" {
            self.claim.stance = Stance::Against;
        } else if AGAINST.contains(&word) && self.has_begun() {
            // `Totals must not be rounded` continues about its subject. After a preposition or a
            // relative pronoun, a negation belongs to the described thing.
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

/// Initial condition of a clause, and the index of the rest.
fn condition(tokens: &[Token]) -> (Terms, usize) {
    let opens = tokens
        .first()
        .is_some_and(|first| !first.is_name && PLACES.contains(&first.word.as_str()));
    match tokens.iter().position(|token| token.comma) {
        Some(end) if opens => (tokens[1..=end].iter().flat_map(terms).collect(), end + 1),
        _ => (Terms::new(), 0),
    }
}

/// Number of words in a phrase that introduces the rejected side of a choice.
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

/// Terms of a word; empty for a word that only carries a demand.
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
        // Numbers are compared separately.
        Vec::new()
    } else {
        words(without_ending(word))
    };
    stems.truncate(1);
    stems
}

/// File name without extension: `readme.md` is the README.
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
