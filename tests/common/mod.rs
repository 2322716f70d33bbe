//! What the test files share, one idea a file.
#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod binary;
pub(crate) mod by_hand;
pub(crate) mod chance;
pub(crate) mod naive;
pub(crate) mod reference_world;
pub(crate) mod window_parts;

use proptest::test_runner::{Config, RngSeed};

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
