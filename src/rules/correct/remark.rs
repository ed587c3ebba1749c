//! Remarks about one output: corrections that may hold for this run only, and the value that they give.
//!
//! The words are compared, not understood. A remark repeats a number or an id of the run, or says how the output
//! was or should have been. Of a field with a plain value, it says in few words that it is wrong or should be another.
//! A missing part is no remark, because it should be there next time too. A word that generalises makes it a rule. A
//! wrong guess costs a candidate.

use serde_json::Value;

use crate::model::text::WordList;
use crate::rules::vocabulary::WORDS;

/// Maximum number of words of a plain value for a field.
const PLAIN: usize = 8;
/// Words for a value that is not right.
const WRONG: [&str; 4] = ["wrong", "incorrect", "falsch", "faux"];

/// Returns `true` if a correction may be about one output only.
pub(crate) fn is_about_one_output(correction: &str, input: &Value, output: &Value) -> bool {
    let lower = correction.to_lowercase();
    let words = words(&lower);
    if words.iter().any(|word| WORDS.general.contains(word)) {
        return false;
    }
    let is_question = lower.trim_end().ends_with(['?', '？']);
    if is_question || words.iter().all(|word| WORDS.verdict.contains(word)) {
        return true;
    }
    let names = |value: &Value| {
        let leaves = leaves(value);
        let is_named = |token: &String| leaves.iter().any(|(_, leaf)| holds(leaf, token));
        particulars(&words).iter().any(is_named)
    };
    let is_given = lower.contains(" be ");
    let is_wrong = || words.iter().any(|word| WRONG.contains(&word.as_str()));
    let is_of_field = || {
        let leaves = leaves(output);
        let mut fields = leaves.iter().filter(|(_, leaf)| !plain(leaf).is_empty());
        fields.any(|(path, _)| is_named(path, &words))
    };
    let gives_value = words.len() <= PLAIN
        && (is_given && words.last().is_some_and(|word| is_particular(word))
            || (is_given || is_wrong()) && is_of_field());
    let is_told = WORDS.past.occur_in(&lower) || is_of_the_past(&lower, &words);
    is_told || names(output) || names(input) || gives_value
}

/// Returns `true` if the words tell how the output was, and demand nothing.
fn is_of_the_past(lower: &str, words: &[String]) -> bool {
    let has = |list: &WordList| words.iter().any(|word| list.contains(word));
    let is_past = |verb: &String| verb.ends_with("ed") || WORDS.did.contains(verb);
    let is_deed = match words {
        [who, verb, ..] => matches!(who.as_str(), "you" | "it") && is_past(verb),
        _ => false,
    };
    let is_told =
        has(&WORDS.was) || is_deed && words.iter().skip(2).any(|word| WORDS.this.contains(word));
    is_told && !WORDS.omitted.occur_in(lower) && !has(&WORDS.standing)
}

/// Returns the output as a remark says that it should have been; `None` if that is not clear.
pub(crate) fn expected(correction: &str, output: &Value) -> Option<Value> {
    let words = words(&correction.to_lowercase());
    let leaves = leaves(output);
    let is_there = |token: &&String| leaves.iter().any(|(_, leaf)| holds(leaf, token));
    let tokens = particulars(&words);
    let (old, new): (Vec<&String>, Vec<&String>) = tokens.iter().partition(is_there);
    let [new] = new[..] else {
        return None;
    };
    let same_shape = |leaf: &Value| shape(&plain(leaf)) == shape(new);
    let of_old = |leaf: &Value| old.iter().any(|token| holds(leaf, token));
    let of_name = |path: &str| is_named(path, &words);
    let only = |fits: &dyn Fn(&str, &Value) -> bool| {
        let mut found = leaves.iter().filter(|(path, leaf)| fits(path, leaf));
        let first = found.next()?;
        found.next().is_none().then(|| first.0.clone())
    };
    let path = only(&|_, leaf| same_shape(leaf) && of_old(leaf))
        .or_else(|| only(&|path, leaf| same_shape(leaf) && of_name(path)))
        .or_else(|| only(&|_, leaf| same_shape(leaf)))?;
    let mut expected = output.clone();
    let place = expected.pointer_mut(&path)?;
    *place = match place {
        Value::Number(_) => serde_json::from_str(new).ok()?,
        Value::String(text) if text.chars().any(char::is_uppercase) => new.to_uppercase().into(),
        _ => new.clone().into(),
    };
    Some(expected)
}

/// Returns `true` if the words have a part of the name of a field.
fn is_named(path: &str, words: &[String]) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default().to_lowercase();
    let mut parts = name.split(|c: char| !c.is_alphanumeric());
    parts.any(|part| part.len() > 2 && words.iter().any(|word| word == part))
}

/// Words without the marks around them; a point inside a number stays.
fn words(text: &str) -> Vec<String> {
    let words = text.split_whitespace();
    let words = words.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned());
    words.filter(|word| !word.is_empty()).collect()
}

/// Numbers and ids: words with a digit.
fn particulars(words: &[String]) -> Vec<String> {
    let words = words.iter().filter(|word| is_particular(word));
    words.cloned().collect()
}

fn is_particular(word: &str) -> bool {
    word.chars().any(|c| c.is_ascii_digit())
}

/// Form of a word: `9` for digits, `a` for letters.
fn shape(word: &str) -> String {
    let mut shape = String::new();
    for c in word.chars() {
        let of = match c {
            '0'..='9' | '.' => '9',
            c if c.is_alphabetic() => 'a',
            c => c,
        };
        if !shape.ends_with(of) {
            shape.push(of);
        }
    }
    shape
}

/// Text of a leaf; empty for a text of several words.
fn plain(leaf: &Value) -> String {
    match leaf {
        Value::String(text) if text.contains(char::is_whitespace) => String::new(),
        Value::String(text) => text.to_lowercase(),
        leaf => leaf.to_string(),
    }
}

/// Returns `true` if a leaf is a word, or a text that has it.
fn holds(leaf: &Value, word: &str) -> bool {
    match leaf {
        // One digit occurs in texts of all kinds.
        Value::String(text) if word.len() > 1 => {
            words(&text.to_lowercase()).iter().any(|w| w == word)
        }
        leaf => plain(leaf) == word,
    }
}

/// Numbers and texts of a value, with their JSON pointers.
fn leaves(value: &Value) -> Vec<(String, Value)> {
    fn walk(value: &Value, path: &str, found: &mut Vec<(String, Value)>) {
        match value {
            Value::Object(fields) => fields.iter().for_each(|(name, value)| {
                let name = name.replace('~', "~0").replace('/', "~1");
                walk(value, &format!("{path}/{name}"), found);
            }),
            Value::Array(items) => (0..).zip(items).for_each(|(at, item): (usize, _)| {
                walk(item, &format!("{path}/{at}"), found);
            }),
            Value::Number(_) | Value::String(_) => found.push((path.to_owned(), value.clone())),
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(value, "", &mut found);
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run() -> (Value, Value) {
        (
            json!({"ticket": "No. 4711: invoice missing", "name": "Mira"}),
            json!({"overall_score": 72, "years": 5, "priority": "P3", "reply": "We will look at it soon."}),
        )
    }

    #[test]
    fn remarks_are_told_from_rules() {
        let (input, output) = run();
        let check = |correction: &str, is_remark: bool| {
            assert_eq!(
                is_about_one_output(correction, &input, &output),
                is_remark,
                "{correction}"
            );
        };
        check("The score should be 48.", true);
        check("Mira should have got 48.", true);
        check("ugh, 4711 should be P1", true);
        check("you gave 72, it is 48", true);
        check("hm, das hätte P1 sein müssen", true);
        check("this is wrong", true);
        check("not what I asked for", true);
        check("why is this so long??", true);
        check("The sum was wrong, there are two more.", true);
        check("It said Lyon but the office was in Paris.", true);
        check("You rated this applicant too low.", true);
        check("Die Anrede war falsch.", true);
        check("The priority should be high.", true);
        check("The score is wrong, it is a fail.", true);
        check("wrong priority, that one can wait", true);
        check("The reply should be shorter.", false);
        check("The greeting should be formal.", false);
        check("You left out the order number.", false);
        check("The order number was missing.", false);
        check(
            "The dates were American, please write them as in Britain.",
            false,
        );
        check("why don't you always sign?", false);
        check("3 sentences max", false);
        check("You forgot the invoice number.", false);
        check("Sign with the team name.", false);
        check("If they mention a refund, the priority is P1.", false);
        check("Scores above 72 need a reason.", false);
        check("Never write 'soon'.", false);
    }

    #[test]
    fn a_remark_gives_the_value_of_one_field() {
        let (_, output) = run();
        let check = |correction: &str, path: &str, value: Value| {
            let found = expected(correction, &output).unwrap();
            assert_eq!(found.pointer(path), Some(&value), "{correction}");
        };
        check("The score should be 48.", "/overall_score", json!(48));
        check("You wrote 72, it is 48.5.", "/overall_score", json!(48.5));
        check("ugh, this should have been P1", "/priority", json!("P1"));
        for unclear in [
            "that should have been lower",
            "48 or 50",
            "it should have been 48",
        ] {
            assert_eq!(expected(unclear, &output), None, "{unclear}");
        }
    }
}
