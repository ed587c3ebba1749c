//! Upkeep of a memory directory: check and repair, secrets, expiry, purge.
//!
//! - `doctor`: checks every file and repairs damage. `secrets`: finds and redacts secrets.
//! - `formats`: formats of the data files.
//! - `prune`: removes expired records. `purge`: removes everything.

pub(crate) mod doctor;
pub(crate) mod formats;
pub(crate) mod prune;
pub(crate) mod purge;
pub(crate) mod secrets;

pub use doctor::{DoctorReport, doctor};
pub use formats::{FileFormat, Formats, KnownFormat};
pub use prune::{PruneReport, Pruned, prune};
pub use purge::{PurgeReport, Removed, purge, purge_user};
pub use secrets::{SecretAt, SecretsReport, secrets};
