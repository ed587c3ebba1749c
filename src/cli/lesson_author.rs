//! The person at this machine: a lesson must not contain their data.

use crate::cli::config::Environment;
use memctl_redact::Person;

/// Returns the person's home directory and login.
pub(crate) fn person(environment: &Environment) -> Person {
    let names = ["USER", "LOGNAME", "USERNAME"];
    let login = names.into_iter().find_map(|name| environment.var(name));
    let home = environment.home.as_ref();
    Person {
        home: home
            .map(|home| home.display().to_string())
            .unwrap_or_default(),
        login: login.unwrap_or_default(),
    }
}
