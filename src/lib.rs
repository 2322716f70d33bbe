//! Kheya: a batched assignment optimizer for ride-hailing dispatch.

pub mod config;
pub mod domain;
pub mod eta;
pub mod candidates;
pub mod decision;
pub mod supply;
