//! The HTTP side over its whole width: in process, and over real sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests are tests too"
)]

mod access;
mod claims;
mod contract;
mod dashboard;
mod drivers;
mod events;
mod regions;
mod requests;
mod serving;
mod solve;
mod support;
mod windows;
