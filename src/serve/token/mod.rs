//! JSON Web Tokens that authenticate callers and limit their domains.
//!
//! - `jwks`: the public keys of an external issuer.
//! - `verify`: the claims of a token, and its conversion to a [`Caller`], or to an error.
//! - `ring`: signature algorithms.
//!
//! Invariants: verification fails closed. A missing, empty or unknown claim is an error, and never
//! means "everything". The type of a key determines its algorithms; the algorithm in a token must
//! agree with it. No error message contains a token or a secret.

mod jwks;
mod ring;
mod verify;

pub use jwks::Jwks;
pub use ring::{Secret, default_file};
pub use verify::{AUDIENCE, Caller, Keys, Minted, NewToken, Refused, Verifier, mint};
