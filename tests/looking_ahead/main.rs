//! Looking ahead: only waiting requests and free cars ever make a pair, waiting for what comes is
//! bounded, and where it is off nothing has changed. What is expected may be learned.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of a test fail it by panicking"
)]

#[path = "../chance/mod.rs"]
mod chance;
#[path = "../command_line/mod.rs"]
mod command_line;
#[path = "../stream_city/server.rs"]
#[allow(
    dead_code,
    reason = "its own process and event stream are not needed here"
)]
mod server;
#[path = "../worlds/mod.rs"]
mod worlds;

mod city;
mod decided;
mod handover;
mod learned;
mod learned_live;
mod live;
mod replayed;
mod unchanged;
