//! The second part of the weights of all-MiniLM-L6-v2, as memctl has them. `NOTICE` gives their source,
//! licence and changes. A part means nothing alone; it is a crate of its own because the registry takes 10
//! MiB.
#![no_std]

/// The second part of the file `model.data`.
pub const WEIGHTS: &[u8] = include_bytes!("weights.data");
