//! Explanations of errors of the terminal and of watched files.

use crate::model::error::{Explain, Explanation, Kind};

impl Explain for notify::Error {
    fn explain(&self) -> Explanation {
        let hint = "check the limit of watched files: sysctl fs.inotify";
        (Kind::Io, Some(hint.to_owned()))
    }
}

impl Explain for dialoguer::Error {
    fn explain(&self) -> Explanation {
        (
            Kind::Io,
            Some("give the answer as an option; see --help".to_owned()),
        )
    }
}
