//! The suite that every store must pass: the protocol's table, idempotency, windows, leadership,
//! quarantine, outbox, sweep and bounds, told through the [`Store`] trait alone.
//!
//! A store under test comes with a clock that the suite moves. Each case works in a region of its
//! own, so one store can serve them all.

#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::missing_errors_doc,
    reason = "a case fails by panicking, as every test does"
)]

mod claims;
mod drivers;
mod generations;
mod leaders;
mod outbox;
mod own_windows;
mod requests;
mod trip_ends;
mod tuning;
mod windows;
mod world;

use std::{future::Future, pin::Pin};

use super::Store;
use crate::domain::{DurationMs, RegionId};

pub use world::World;

/// What a case gives while it runs.
pub type CaseFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A store under test.
pub trait Harness: Send + Sync {
    /// The store.
    fn store(&self) -> &dyn Store;

    /// Lets the store's clock move forward.
    fn advance(&self, by: DurationMs) -> CaseFuture<'_>;

    /// Takes a region's data away, as a store does that lost its disk, while nodes remember the
    /// generation.
    fn lose<'a>(&'a self, region: &'a RegionId) -> CaseFuture<'a>;

    /// Remembers the region's data as it is, as a replica does that then falls behind.
    fn remember<'a>(&'a self, region: &'a RegionId) -> CaseFuture<'a>;

    /// Falls back to what was remembered, as a promotion of that replica does.
    fn fall_back<'a>(&'a self, region: &'a RegionId) -> CaseFuture<'a>;
}

/// One behaviour that a store must show.
#[derive(Clone, Copy)]
pub struct Case {
    /// The behaviour.
    pub name: &'static str,
    run: for<'a> fn(&'a World<'a>) -> CaseFuture<'a>,
}

impl Case {
    /// Runs the case against a store; it panics when the store fails it.
    pub async fn check(&self, harness: &dyn Harness) {
        (self.run)(&World::new(harness, self.name)).await;
    }
}

/// Declares the cases of a module: async functions of a [`World`].
macro_rules! declare {
    ($($name:ident),* $(,)?) => {
        pub(super) fn cases() -> Vec<super::Case> {
            vec![$(super::Case { name: stringify!($name), run: |world| Box::pin($name(world)) }),*]
        }
    };
}
use declare;

/// Every case.
pub fn cases() -> Vec<Case> {
    [
        claims::cases(),
        drivers::cases(),
        generations::cases(),
        leaders::cases(),
        outbox::cases(),
        own_windows::cases(),
        requests::cases(),
        trip_ends::cases(),
        tuning::cases(),
        windows::cases(),
    ]
    .concat()
}
