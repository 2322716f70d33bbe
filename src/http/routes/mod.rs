//! The routes, by resource. Each checks, calls the store or the runtime, and answers.

pub(crate) mod claims;
pub(crate) mod drivers;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod reconcile;
pub(crate) mod regions;
pub(crate) mod requests;
pub(crate) mod solve;
pub(crate) mod windows;
