//! What the tests of a distributed service stand on: real processes, and faults that are really
//! injected into them and between them.
//!
//! - [`RedisServer`], [`RedisPair`], [`SentinelSet`], [`Cluster`]: the packaged `redis-server`, each
//!   in a directory of its own, with kills, pauses, cut logs, moved clocks and lossy failovers;
//! - [`Proxy`]: delays, black holes, cuts, duplicates on the way between a client and a server;
//! - [`Node`]: a `kheya serve` process.
//!
//! Promises: calls block until what they ask for has happened, and fail the test by panicking if it
//! does not; everything can be shared between threads; nothing outlives the test binary, however it
//! ends (see [`process`]); ports lie below those that the system gives out, so that a server comes
//! back on its own. Assumes Linux (`/proc`, `LD_PRELOAD`), `sh`, and `redis-server` on the path.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a kit for tests fails a test by panicking"
)]

mod node;
pub mod port;
pub mod process;
pub mod proxy;
pub mod redis;
pub mod waiting;

pub use node::{Node, NodeSettings};
pub use proxy::{Command, Delay, Fault, Injected, Often, Proxy, Towards};
pub use redis::{
    AppendOnly, Cluster, LostTail, RedisPair, RedisServer, RedisSettings, SentinelSet, Takeover,
};
