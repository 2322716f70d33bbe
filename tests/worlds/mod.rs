//! Windows and worlds made for tests, and the contract's rules written once more in plain code to
//! hold them against.
#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod by_hand;
pub(crate) mod naive;
pub(crate) mod reference_world;
pub(crate) mod window_parts;
