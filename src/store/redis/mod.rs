//! The Redis store.

#[allow(dead_code, unused_imports, reason = "the store to come calls it")]
mod link;

pub use link::{AddressError, LinkError, RedisAddress};
