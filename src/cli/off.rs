//! Reasons why memory is switched off.
//!
//! Two switches turn memory off: the marker file in the memory directory, for every user of it, and
//! `MEMCTL_MEMORY=off`, for one process. Either of them is enough.

use std::fmt;
use std::path::PathBuf;

use crate::config::{Environment, Places};
use crate::platform::Directory;
use crate::store::is_disabled;

/// Variable that switches memory off for one process.
const VARIABLE: &str = "MEMCTL_MEMORY";

/// Reason why memory is off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Off {
    /// The marker file at this path.
    Marker(PathBuf),
    /// The environment variable, with its value.
    Variable(String),
}

impl fmt::Display for Off {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Marker(path) => write!(f, "memory is disabled by `{}`", path.display()),
            Self::Variable(value) => write!(f, "memory is disabled by `{VARIABLE}={value}`"),
        }
    }
}

impl Off {
    /// Returns the reason why memory is off; `None` while it is on. An unknown value of the
    /// variable switches it off too: the user meant something, and unwanted writes cannot be
    /// undone.
    pub(super) fn of(environment: &Environment, places: &Places) -> Option<Self> {
        let value = environment.var(VARIABLE).unwrap_or_default();
        let on = ["", "on", "1", "true", "yes"];
        if !on.contains(&value.trim().to_lowercase().as_str()) {
            return Some(Self::Variable(value));
        }
        is_disabled(&Directory::at(&places.memory))
            .then(|| Self::Marker(places.memory.join("disabled")))
    }

    /// Returns the way to switch memory on again.
    pub(super) fn hint(&self) -> String {
        match self {
            Self::Marker(_) => "memctl memory enable".to_owned(),
            Self::Variable(_) => format!("unset {VARIABLE}, or set it to `on`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scope;
    use crate::store::Scoped;

    #[test]
    fn off_by_one_of_two_is_off() {
        let home = tempfile::tempdir().unwrap();
        let off = |value: &str| {
            let vars = [(VARIABLE, value), ("AGENTURA_KNOWLEDGE_DIR", "m")];
            let environment = Environment::fixed(home.path(), home.path(), &vars);
            Off::of(&environment, &Places::find(&environment, None))
        };
        for on in ["", "on", "1", "TRUE", "yes"] {
            assert_eq!(off(on), None, "{on}");
        }
        for word in ["off", "0", "false", "no", "nonsense"] {
            assert_eq!(off(word), Some(Off::Variable(word.to_owned())));
        }
        Scoped::new(home.path().join("m"), Scope::All)
            .disable()
            .unwrap();
        assert!(matches!(off("on"), Some(Off::Marker(_))));
        assert!(matches!(off("off"), Some(Off::Variable(_))));
    }
}
