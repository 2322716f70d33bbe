//! Kheya: a batched assignment optimizer for ride-hailing dispatch.

pub mod domain;
pub mod protocol;
pub mod store;
