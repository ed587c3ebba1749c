//! Count of attacks of one class. `SECURITY.md` prints the counts, and each test holds its row
//! against what it tried.

use std::fs;
use std::path::Path;

/// Attacks of one class, and those that got through.
pub(crate) struct Tally {
    class: &'static str,
    tries: usize,
    breaks: Vec<String>,
}

impl Tally {
    /// Starts the count of a class, as its row in `SECURITY.md` names it.
    pub(crate) const fn of(class: &'static str) -> Self {
        Self {
            class,
            tries: 0,
            breaks: Vec::new(),
        }
    }

    /// Counts one attack.
    pub(crate) fn attempt(&mut self, attack: &str, broke: bool) {
        self.tries += 1;
        if broke {
            self.breaks.push(attack.to_owned());
        }
    }

    /// Fails if an attack got through, or if the page prints other numbers.
    pub(crate) fn holds(self) {
        let Self {
            class,
            tries,
            breaks,
        } = self;
        assert!(
            breaks.is_empty(),
            "{class}: {} of {tries}:\n{}",
            breaks.len(),
            breaks.join("\n")
        );
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("SECURITY.md");
        let page = fs::read_to_string(page).unwrap();
        let row = format!("| {class} | {tries} | 0 |");
        assert!(
            page.lines().any(|line| line.starts_with(&row)),
            "no row: {row}"
        );
    }
}
