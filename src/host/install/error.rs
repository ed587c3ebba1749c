//! Errors of the installation of hooks.

use std::io;
use std::path::PathBuf;

use crate::model::error::{Explain, Explanation, Kind, of_io};
use crate::store;

/// Reason why the hooks were not installed or removed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The settings cannot be read.
    #[error("cannot read `{}`", path.display())]
    Unreadable {
        /// Path of the settings file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The settings are not JSON, and so are left unchanged.
    #[error("`{}` is not JSON: line {line}: {reason}", path.display())]
    Invalid {
        /// Path of the settings file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// Reason.
        reason: &'static str,
    },
    /// The settings are JSON, but have another type where hooks belong.
    #[error("`{}` has {what}; nothing was changed", path.display())]
    Shape {
        /// Path of the settings file.
        path: PathBuf,
        /// Description of the obstacle.
        what: String,
    },
    /// The settings cannot be written.
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Explain for Error {
    fn explain(&self) -> Explanation {
        let (kind, path) = match self {
            Self::Store(error) => return error.explain(),
            Self::Unreadable { path, source } => (of_io(source), path),
            Self::Invalid { path, .. } | Self::Shape { path, .. } => (Kind::Input, path),
        };
        let hint = format!("repair `{}` and try again", path.display());
        (kind, Some(hint))
    }
}
