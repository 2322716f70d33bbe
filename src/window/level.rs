//! How well a region is served, as this node saw it last.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::{http::Level, protocol::ReportSource};

/// The level of a region; it starts as good as this node can be.
#[derive(Debug, Default)]
pub(super) struct ServedLevel(AtomicU8);

const BATCH: u8 = 0;
const GREEDY: u8 = 1;
const UNAVAILABLE: u8 = 2;

impl ServedLevel {
    /// A window was sealed.
    pub(super) fn store(&self, source: ReportSource) {
        let level = if source == ReportSource::Batch {
            BATCH
        } else {
            GREEDY
        };
        // the level is a plain number: no other memory is published with it
        self.0.store(level, Ordering::Relaxed);
    }

    /// The store could not be reached.
    pub(super) fn store_lost(&self) {
        self.0.store(UNAVAILABLE, Ordering::Relaxed);
    }

    /// The store can be reached again.
    pub(super) fn store_found(&self) {
        let _ = self
            .0
            .compare_exchange(UNAVAILABLE, BATCH, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The present level: with straight-line ETAs, the only ones there are yet.
    pub(super) fn load(&self) -> Level {
        match self.0.load(Ordering::Relaxed) {
            BATCH => Level::BatchStraightLine,
            GREEDY => Level::Greedy,
            _ => Level::Unavailable,
        }
    }
}
