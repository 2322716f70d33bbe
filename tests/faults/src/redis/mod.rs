//! Real Redis servers, alone, in pairs, under Sentinel and as a cluster.

mod clock;
mod cluster;
mod pair;
mod sentinel;
mod server;
mod settings;

pub use cluster::Cluster;
pub use pair::{LostTail, RedisPair};
pub use sentinel::SentinelSet;
pub use server::RedisServer;
pub use settings::{AppendOnly, RedisSettings};

use std::{sync::Arc, time::Duration};

/// A primary that was replaced.
#[derive(Debug, Clone)]
pub struct Takeover {
    /// Who served before.
    pub from: Arc<RedisServer>,
    /// Who serves now.
    pub to: Arc<RedisServer>,
    /// Time from the fault until the new primary said that it is one.
    pub took: Duration,
}
