//! Property tests of the union of two sides: complete, symmetric except for numbers, idempotent.

use proptest::prelude::*;
use serde_json::json;

use crate::upkeep::merge::*;

/// Changes on one side: new pairs of a correction and its rule, edited rules, removed rules.
#[derive(Debug, Clone, Default)]
struct Story {
    comes: u8,
    edits: Vec<(u8, u8)>,
    forgets: Vec<u8>,
    drops: Vec<u8>,
}

fn story() -> impl Strategy<Value = Story> {
    let edits = proptest::collection::vec((0..4_u8, 0..3_u8), 0..3);
    let some = || proptest::collection::vec(0..4_u8, 0..2);
    (0..4_u8, edits, some(), some()).prop_map(|(comes, edits, forgets, drops)| Story {
        comes,
        edits,
        forgets,
        drops,
    })
}

#[derive(Debug, Clone, Default)]
struct World {
    corrections: Vec<Value>,
    rules: Vec<Value>,
    tombstones: Vec<Value>,
}

impl World {
    fn with(mut self, side: u8, story: &Story) -> Self {
        for n in 0..story.comes {
            let number = self.corrections.len() + 1;
            let birth = format!("2026-01-01T00:00:{:02}.{side:03}{n:03}+00:00", 10 + n);
            let correction = format!("CORR-{number:03}");
            self.corrections.push(json!({
                "correction_id": correction, "skill": "hr/x", "timestamp": birth, "user_correction": birth,
            }));
            let highest = self
                .rules
                .iter()
                .chain(&self.tombstones)
                .filter_map(|rule| {
                    let id = rule.get("reflexion_id").or(rule.get("id"))?.as_str()?;
                    id.strip_prefix("REFL-")?.parse::<u64>().ok()
                });
            let id = format!("REFL-{:03}", highest.max().unwrap_or(0) + 1);
            self.rules.push(json!({
                "reflexion_id": id, "skill": "hr/x", "created_at": birth, "correction_id": correction,
                "rule": birth, "times_injected": 0,
            }));
        }
        for (at, value) in &story.edits {
            if let Some(rule) = self.rules.get_mut(usize::from(*at)) {
                rule["mistake"] = json!(format!("m{value}"));
                rule["times_injected"] = json!(rule["times_injected"].as_u64().unwrap() + 1);
            }
        }
        for (at, is_forgotten) in story
            .forgets
            .iter()
            .map(|a| (a, true))
            .chain(story.drops.iter().map(|a| (a, false)))
        {
            if usize::from(*at) < self.rules.len() {
                let removed = self.rules.remove(usize::from(*at));
                if is_forgotten {
                    self.tombstones.push(json!({
                        "id": removed["reflexion_id"], "kind": "reflexion", "at": "2026-01-02T00:00:00Z", "digest": "",
                    }));
                }
            }
        }
        self
    }

    fn files(&self) -> Files {
        let lines: Vec<String> = self.tombstones.iter().map(Value::to_string).collect();
        let lines = lines
            .iter()
            .flat_map(|line| [line.as_str(), "\n"])
            .collect();
        let text = [
            (
                "corrections.json",
                json!({"corrections": self.corrections}).to_string(),
            ),
            (
                "reflexion_entries.json",
                json!({"entries": self.rules}).to_string(),
            ),
            ("tombstones.jsonl", lines),
        ];
        let text = text.into_iter();
        text.map(|(name, text)| (format!("{DIRECTORY}/{name}"), text.into_bytes()))
            .collect()
    }
}

fn entries(files: &Files, name: &str, key: &str) -> Vec<Value> {
    let file: Value = serde_json::from_slice(&files[&format!("{DIRECTORY}/{name}")]).unwrap();
    file[key].as_array().unwrap().clone()
}

/// Records by creation time, without their numbers. Checks that every rule matches its correction.
fn contents(files: &Files) -> BTreeMap<String, Value> {
    let corrections = entries(files, "corrections.json", "corrections");
    let mut found = BTreeMap::new();
    let mut ids = std::collections::BTreeSet::new();
    for correction in &corrections {
        assert!(
            ids.insert(correction["correction_id"].clone().to_string()),
            "twice: {correction}"
        );
        let birth = correction["timestamp"].as_str().unwrap();
        assert!(
            found
                .insert(format!("correction {birth}"), json!({}))
                .is_none(),
            "twice: {birth}"
        );
    }
    for mut rule in entries(files, "reflexion_entries.json", "entries") {
        assert!(
            ids.insert(rule["reflexion_id"].to_string()),
            "twice: {rule}"
        );
        let of = corrections
            .iter()
            .find(|c| c["correction_id"] == rule["correction_id"]);
        assert_eq!(of.unwrap()["timestamp"], rule["created_at"], "{rule}");
        let birth = rule["created_at"].as_str().unwrap().to_owned();
        for name in ["reflexion_id", "correction_id", "merged_from", CONFLICT] {
            rule.as_object_mut().unwrap().shift_remove(name);
        }
        assert!(
            found.insert(format!("rule {birth}"), rule).is_none(),
            "twice: {birth}"
        );
    }
    found
}

fn joined(base: &Files, ours: &Files, theirs: &Files) -> Joined {
    let [base, ours, theirs] = [base, ours, theirs].map(Clone::clone);
    join(&Versions { base, ours, theirs }).unwrap()
}

proptest! {
    #[test]
    fn any_two_sides_are_joined_without_loss(start in story(), a in story(), b in story()) {
        let base = World::default().with(1, &Story { comes: 3, ..start });
        let (a, b) = (base.clone().with(2, &a), base.clone().with(3, &b));
        let [base, ours, theirs] = [base.files(), a.files(), b.files()];
        let both = joined(&base, &ours, &theirs);
        let found = contents(&both.files);
        let (of_base, of_ours, of_theirs) = (contents(&base), contents(&ours), contents(&theirs));
        for (birth, record) in of_ours.iter().chain(&of_theirs) {
            let is_new = !of_base.contains_key(birth);
            let is_kept = of_ours.contains_key(birth) && of_theirs.contains_key(birth);
            if is_new || is_kept {
                prop_assert!(found.contains_key(birth), "{birth} is lost");
            }
            if is_new {
                prop_assert_eq!(&found[birth], record);
            }
        }
        // No record appears from nowhere.
        for birth in found.keys() {
            prop_assert!(of_ours.contains_key(birth) || of_theirs.contains_key(birth));
        }
        // Swapping the sides changes only numbers and open conflicts.
        let other = joined(&base, &theirs, &ours);
        prop_assert_eq!(both.conflicts.len(), other.conflicts.len());
        if both.conflicts.is_empty() {
            let again = contents(&other.files);
            prop_assert_eq!(&again, &found);
        }
        // A second merge adds nothing.
        for (base, theirs) in [(&base, &theirs), (&theirs, &theirs)] {
            let again = joined(base, &both.files, theirs);
            if both.conflicts.is_empty() && std::ptr::eq(base, theirs) {
                prop_assert_eq!(&again.files, &both.files);
            }
            prop_assert!(again.new_ids.is_empty());
        }
        // Merging again gives the same files: there is no hidden state.
        prop_assert_eq!(joined(&base, &ours, &theirs).files, both.files);
    }
}

/// Merges two sides as git does: a file that only one side has changed is taken as it is.
fn merged_by_git(base: &Files, ours: &Files, theirs: &Files) -> Files {
    let mut files = joined(base, ours, theirs).files;
    for (path, before) in base {
        if ours[path] == *before {
            files.insert(path.clone(), theirs[path].clone());
        } else if theirs[path] == *before {
            files.insert(path.clone(), ours[path].clone());
        }
    }
    files
}

proptest! {
    /// `contents` checks that each rule is tied to its own correction.
    #[test]
    fn references_are_right_after_a_merge_of_a_merge(
        a in 0..3_u8, b in 0..3_u8, edits in proptest::collection::vec((0..6_u8, 0..3_u8), 0..3), later in 0..2_u8,
    ) {
        let comes = |comes: u8| Story { comes, ..Story::default() };
        let base = World::default().with(1, &comes(2));
        let (ann, ben) = (base.clone().with(2, &comes(a)), base.clone().with(3, &comes(b)));
        let shared = merged_by_git(&base.files(), &ben.files(), &ann.files());
        // Ann edits while Ben pushes a merge; then each pulls.
        let next = ann.clone().with(4, &Story { comes: later, edits, ..Story::default() });
        let (ann, next) = (ann.files(), next.files());
        let all = contents(&shared).len() + 2 * usize::from(later);
        for (ours, theirs) in [(&next, &shared), (&shared, &next)] {
            let found = contents(&merged_by_git(&ann, ours, theirs));
            prop_assert_eq!(found.len(), all);
        }
    }
}

#[test]
fn lines_of_both_sides_stand_in_the_order_of_time() {
    let line = |n: u32| format!("{{\"at\": \"2026-01-01T00:00:{n:02}Z\"}}");
    let check = |base: &[u32], ours: &[u32], theirs: &[u32], expected: &[u32]| {
        let lines = |numbers: &[u32]| numbers.iter().map(|n| line(*n)).collect::<Vec<_>>();
        let found = joined_tombstones(&lines(base), &lines(ours), &lines(theirs));
        assert_eq!(found, lines(expected), "{base:?} {ours:?} {theirs:?}");
    };
    check(&[1], &[1, 3, 5], &[1, 2, 4, 6], &[1, 2, 3, 4, 5, 6]);
    check(&[], &[1], &[1], &[1]);
    check(&[1, 2], &[1], &[1, 2, 3], &[1, 3]);
    check(&[1, 2], &[1, 2, 3], &[2], &[2, 3]);
    check(&[], &[], &[], &[]);
    let text = |text: &str| vec![text.to_owned()];
    assert_eq!(joined_tombstones(&[], &text("x"), &text("y")), ["x", "y"]);
}
