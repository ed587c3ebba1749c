//! Weights of the layers of all-MiniLM-L6-v2, as memctl has them. `NOTICE` gives their source, licence and
//! changes. The network and the table of words lie in `memctl-search`: the registry takes 10 MiB of a crate.
#![no_std]

/// The file `model.data`.
pub const WEIGHTS: &[u8] = include_bytes!("weights.data");
