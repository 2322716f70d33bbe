//! The way to Redis: one mechanism for a single server, for Sentinel and for Cluster.
//!
//! A [`Link`] promises four things, whatever happens to Redis. Every call ends within its deadline.
//! A call that may have been executed is never reported as not executed, and no mutation is ever
//! sent twice but where a server's answer proves that the first one was not executed. A server that
//! is lost costs only the calls that need it. And a server that comes back is used again within
//! moments.
//!
//! The connections of redis-rs carry the bytes; everything above them is ours, because its
//! connection manager waits beyond any deadline while Redis is away, keeps half-open sockets and
//! demoted primaries, and its cluster client repeats mutations.

mod address;
mod channel;
mod check;
mod cluster;
mod counters;
mod dial;
mod endpoint;
mod error;
mod finder;
mod gather;
mod lane;
#[expect(
    clippy::module_inception,
    reason = "the link is what the directory is about"
)]
mod link;
mod request;
mod sentinel;
mod server;
mod slot;
mod slot_map;
mod tls;

#[cfg(test)]
mod tests;

pub use address::{AddressError, RedisAddress};
pub use check::ServerReport;
pub use counters::LinkCounters;
pub(crate) use error::CallError;
pub use error::LinkError;
pub(crate) use lane::Lane;
pub use lane::LinkOptions;
pub(crate) use link::Link;
pub(crate) use request::Script;
