//! Replaying recorded demand.

pub mod input;
