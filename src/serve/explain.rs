//! Explanations of errors of a server that does not start.

use crate::model::error::{Explain, Explanation, Kind, of_io};
use crate::serve::http::{InvalidOrigin, NotListening};
use crate::serve::token::InvalidSecret;

impl Explain for InvalidOrigin {
    fn explain(&self) -> Explanation {
        (Kind::Input, Some("memctl serve --help".to_owned()))
    }
}

impl Explain for NotListening {
    fn explain(&self) -> Explanation {
        match self {
            Self::NotLoopback(_) => (
                Kind::Usage,
                Some("add `--allow-remote` to serve other machines".to_owned()),
            ),
            Self::Refused { .. } => (Kind::Io, Some("memctl serve --addr 127.0.0.1:0".to_owned())),
        }
    }
}

impl Explain for InvalidSecret {
    fn explain(&self) -> Explanation {
        let kind = match self {
            Self::Store(error) => return error.explain(),
            Self::Unreadable { source, .. } => of_io(source),
            Self::Short { .. } | Self::Long { .. } => Kind::Input,
        };
        (kind, Some("openssl rand -hex 32 > secret.txt".to_owned()))
    }
}
