//! Tokens: JSON Web Tokens that say who asks, and in which domains.
//!
//! - `claims`: what a token says, and what of it counts.
//! - `secret`: the secret that `memctl token` signs with and `memctl serve` verifies by.
//! - `jwks`: the public keys of somebody else who signs.
//! - `head`: the form of a token, before its signature.
//! - `verify`: from a text to a [`Caller`], or to a reason.
//! - `ring`: the signatures themselves.
//!
//! Invariants: it fails closed. What is missing, empty or not understood in a token is a refusal, and
//! never "everything". A key says by its kind which algorithms it verifies; what a token says of its
//! algorithm can only agree with that. No error repeats a token or a secret.

mod claims;
mod head;
mod jwks;
mod ring;
mod secret;
mod verify;

pub use claims::{AUDIENCE, Caller, Minted, NewToken, mint};
pub use jwks::Jwks;
pub use secret::{InvalidSecret, Secret, default_file};
pub use verify::{Keys, Refused, Verifier};
