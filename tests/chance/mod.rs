//! Seeded chance: numbers for what is built, and fixed cases for what proptest draws.
#![allow(dead_code, reason = "each test file uses a part")]

use kheya::domain::Draw;
use proptest::test_runner::{Config, RngSeed};

/// A stream of numbers that is the same for the same seed, on every machine.
pub(crate) struct Chance {
    seed: u64,
    drawn: u64,
}

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, drawn: 0 }
    }

    /// A number in `0..count`.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        self.next().below(count)
    }

    /// A number in `[0, 1)`.
    pub(crate) fn unit(&mut self) -> f64 {
        self.next().unit_f64()
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last + 1);
            items.swap(last, other);
        }
    }

    fn next(&mut self) -> Draw {
        self.drawn += 1;
        Draw::new(self.seed, "test").number(self.drawn)
    }
}

/// Property tests that draw the same cases in every run.
pub(crate) fn fixed_cases(cases: u32) -> Config {
    Config {
        cases,
        rng_seed: RngSeed::Fixed(2026),
        failure_persistence: None,
        max_shrink_iters: 4000,
        ..Config::default()
    }
}
