//! Switches that turn memory off: the marker file in the memory directory, for every user of it; the list of users
//! there, for one of them; and `MEMCTL_MEMORY=off`, for one process. Each of them is enough.

use std::path::PathBuf;

use memctl_files::Directory;

use crate::cli::config::{Config, Environment, Places};
use crate::model::error::{Explain, Explanation, Kind};
use crate::store::{disabled_users, is_disabled};

/// Variable that switches memory off for one process.
const VARIABLE: &str = "MEMCTL_MEMORY";

/// Reason why memory is off.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Off {
    /// The marker file at this path.
    #[error("memory is disabled by `{}`", .0.display())]
    Marker(PathBuf),
    /// The environment variable, with its value.
    #[error("memory is disabled by `MEMCTL_MEMORY={0}`")]
    Variable(String),
    /// The list of users, with the current one.
    #[error("memory is disabled for the user `{}`", .0.escape_debug())]
    User(String),
}

impl Explain for Off {
    fn explain(&self) -> Explanation {
        (Kind::Usage, Some(self.hint()))
    }
}

impl Off {
    /// Returns the reason why memory is off; `None` while it is on. An unknown value of the
    /// variable switches it off too: the user meant something, and unwanted writes cannot be
    /// undone.
    /// `user` is the user of the command line.
    pub(crate) fn of(
        environment: &Environment,
        places: &Places,
        user: Option<&str>,
    ) -> Option<Self> {
        let value = environment.var(VARIABLE).unwrap_or_default();
        let on = ["", "on", "1", "true", "yes"];
        if !on.contains(&value.trim().to_lowercase().as_str()) {
            return Some(Self::Variable(value));
        }
        let memory = Directory::at(&places.memory);
        if is_disabled(&memory) {
            return Some(Self::Marker(places.memory.join("disabled")));
        }
        // The store refuses users while the list cannot be read.
        let users = disabled_users(&memory).unwrap_or_default();
        if users.is_empty() {
            return None;
        }
        let flags: Vec<_> = user
            .iter()
            .map(|user| ("user", (*user).to_owned()))
            .collect();
        let config = Config::load(environment, &places.memory, &flags).ok()?;
        let viewer = config.viewer().ok()?;
        let user = viewer.user_id()?;
        users
            .iter()
            .any(|name| name == user)
            .then(|| Self::User(user.to_owned()))
    }

    /// Returns the way to switch memory on again.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::Marker(_) => "memctl memory enable".to_owned(),
            Self::User(user) => format!("memctl memory enable --user {user}"),
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
            Off::of(&environment, &Places::find(&environment, None), None)
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
