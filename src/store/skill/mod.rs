//! Skills on disk: `skills/<domain>/<skill>/SKILL.md` and the files around it.
//!
//! ```text
//! skills/
//!   WORKSPACE.md                    layer 0: common to all skills
//!   hr/
//!     DOMAIN.md  GUARDRAILS.md      layer 1, and mistakes to avoid
//!     resume-screen/
//!       SKILL.md  GUARDRAILS.md     layer 3: metadata and the prompt
//!       examples/*.json             {"input", "output"} cases
//!       fixtures/*.json             sample inputs
//!       tests/generated/            regression tests from corrections
//! ```
//!
//! Invariants:
//! - The directories name a skill. The name and domain in the metadata are for display only; a
//!   difference is a [`Problem`]. They never decide which rules, tests or records belong to a
//!   skill.
//! - No file outside the skills directory is read, even through symbolic links. The one exception
//!   is `WORKSPACE.md` next to the skills directory, in the project root.
//! - Only a defect that makes a skill unusable is an [`Error`](crate::store::Error). Everything else is a [`Problem`] of
//!   a working skill.
//!
//! Deliberately absent: writing (other modules write to paths that [`Skills::place`] allows), and
//! the learned rules, which are layer 2 and come from the store.
//!
//! Messages of errors name the file relative to the project root; the caller adds a hint.
//!
//! `WORKSPACE.md` is looked up in the skill, the domain, the skills directory and the project root;
//! `DOMAIN.md` in the first three. The nearest file wins, even if it is empty, so an empty file
//! lets a skill opt out of its domain's layer. An empty layer is left out.

mod discover;
mod files;
mod front_matter;
pub mod guardrails;
mod loaded;
mod root;

pub use crate::store::skill::discover::Listing;
pub use crate::store::skill::files::{Example, Examples};
pub use crate::store::skill::front_matter::{FrontMatter, read as read_front_matter};
pub use crate::store::skill::loaded::{BundledFile, Layer, Problem, Skill};
pub use crate::store::skill::root::{MAX_BYTES, Skills, refused};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use serde_json::value::RawValue;

    use super::guardrails::Guardrail;
    use super::*;
    use crate::model::SkillPath;

    /// Users copy the skills that come with the project.
    #[test]
    fn the_sample_skills_are_beyond_reproach() {
        let project = Path::new(env!("CARGO_MANIFEST_DIR"));
        let skills = Skills::open(&project.join("skills")).unwrap();
        let listing = skills.list().unwrap();
        assert_eq!(listing.problems, []);
        let domains: BTreeSet<&str> = listing.skills.iter().map(SkillPath::domain).collect();
        assert!(
            domains.len() >= 3 && listing.skills.len() >= 5,
            "{listing:?}"
        );
        for path in &listing.skills {
            let skill = skills.load(path).unwrap();
            assert_eq!(skill.problems, [], "{path}");
            let layers: Vec<u8> = skill.layers().iter().map(|layer| layer.number).collect();
            assert_eq!(layers, [0, 1, 3], "{path}");
            check_cases(&skills, path);
            check_guardrails(&skills, path);
        }
    }

    fn keys(json: &RawValue) -> BTreeSet<String> {
        let map: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(json.get()).unwrap();
        map.into_iter().map(|(key, _)| key).collect()
    }

    /// All examples of a skill share one format, which its prompt describes and its sample input
    /// follows.
    fn check_cases(skills: &Skills, path: &SkillPath) {
        let skill = skills.load(path).unwrap();
        let examples = skills.examples(path).unwrap();
        assert_eq!(examples.problems, [], "{path}");
        let (first, others) = examples.cases.split_first().unwrap();
        assert!(!others.is_empty(), "{path}");
        for case in others {
            assert_eq!(
                keys(&case.output),
                keys(&first.output),
                "{path} {}",
                case.name
            );
            assert_eq!(
                keys(&case.input),
                keys(&first.input),
                "{path} {}",
                case.name
            );
        }
        for key in keys(&first.output).union(&keys(&first.input)) {
            assert!(skill.body.contains(&format!("`{key}`")), "{path}: {key}");
        }
        let sample = skills.sample_input(path).unwrap().unwrap();
        let sample = skills.read(&sample).unwrap().unwrap();
        let sample: Box<RawValue> = serde_json::from_str(&sample).unwrap();
        assert_eq!(keys(&sample), keys(&first.input), "{path}");
    }

    fn check_guardrails(skills: &Skills, path: &SkillPath) {
        let files = skills.guardrail_files(path).unwrap();
        let text = skills.read(&files[0]).unwrap().unwrap();
        let guardrail = Guardrail {
            title: "t",
            rule: "r",
            correction_id: "CORR-999",
        };
        let new = guardrails::append(&text, &guardrail).unwrap();
        let closing = "**Source**: CORR-999\n\n---\n\n## When to Add New Guardrails\n";
        let heading = new.find(": t\n").unwrap();
        assert!(
            new[..heading].ends_with("\n\n---\n\n## GRD-003")
                || new[..heading].ends_with("\n\n---\n\n## GRD-004"),
            "{path}: {new}"
        );
        assert!(new.contains(closing), "{path}: {new}");
    }

    /// Asserts the layers of `hr/x`, as `number source text`, for a tree of files.
    #[expect(clippy::disallowed_methods, reason = "a test makes its own tree")]
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let tmp = tempfile::tempdir().unwrap();
        let project = tmp.path().join("above/project");
        let skill = project.join("skills/hr/x");
        fs::create_dir_all(&skill).unwrap();
        for (path, text) in files {
            fs::write(project.join(path), text).unwrap();
        }
        let skills = Skills::open(&project.join("skills")).unwrap();
        let layers = skills.above(&skill, &mut Vec::new()).unwrap();
        let shown: Vec<String> = layers
            .iter()
            .map(|l| format!("{} {} {}", l.number, l.source.display(), l.text))
            .collect();
        assert_eq!(shown, expected, "{files:?}");
    }

    #[test]
    fn the_nearest_file_wins() {
        check(&[], &[]);
        check(
            &[
                ("skills/WORKSPACE.md", " a\r\nb \n"),
                ("skills/hr/DOMAIN.md", "d\n"),
            ],
            &["0 skills/WORKSPACE.md a\nb", "1 skills/hr/DOMAIN.md d"],
        );
        check(
            &[
                ("skills/WORKSPACE.md", "far"),
                ("skills/hr/WORKSPACE.md", "near"),
            ],
            &["0 skills/hr/WORKSPACE.md near"],
        );
        check(&[("WORKSPACE.md", "w")], &["0 WORKSPACE.md w"]);
        check(
            &[
                ("skills/hr/x/DOMAIN.md", "own"),
                ("skills/DOMAIN.md", "far"),
            ],
            &["1 skills/hr/x/DOMAIN.md own"],
        );
        check(&[("skills/DOMAIN.md", "d")], &["1 skills/DOMAIN.md d"]);
    }

    #[test]
    fn an_empty_file_is_found_and_left_out() {
        check(
            &[
                ("skills/WORKSPACE.md", "far"),
                ("skills/hr/WORKSPACE.md", " \n\u{feff}".trim()),
            ],
            &[],
        );
    }

    #[test]
    fn nothing_is_looked_for_above_the_project_root() {
        check(
            &[
                ("../WORKSPACE.md", "w"),
                ("../DOMAIN.md", "d"),
                ("DOMAIN.md", "d"),
            ],
            &[],
        );
    }
}
