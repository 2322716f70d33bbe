//! The Redis store.

mod link;

pub use link::{AddressError, RedisAddress};
