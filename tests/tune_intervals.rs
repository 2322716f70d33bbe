//! The intervals of a sweep hold the truth as often as they say.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use common::chance::Chance;
use kheya::replay::tune::{Estimate, holm_intervals, paired_estimates};

/// How the made-up differences scatter: by seed, by block (neighbours alike by `memory`), and in each
/// block and seed for itself.
#[derive(Clone, Copy)]
struct World {
    seeds: usize,
    blocks: usize,
    of_seed: f64,
    of_block: f64,
    memory: f64,
    noise: f64,
}

const TRUTH: f64 = 3.0;

fn normal(chance: &mut Chance) -> f64 {
    // twelve even draws: near enough to normal
    (0..12).map(|_| chance.unit()).sum::<f64>() - 6.0
}

impl World {
    /// One recording: requests and summed differences, by seed and block.
    fn draw(self, chance: &mut Chance) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
        let mut block_effect = Vec::new();
        let mut last = normal(chance);
        for _ in 0..self.blocks {
            block_effect.push(self.of_block * last);
            last = self.memory * last + (1.0 - self.memory * self.memory).sqrt() * normal(chance);
        }
        let requests: Vec<f64> = (0..self.blocks)
            .map(|_| 50.0 + (100.0 * chance.unit()).floor())
            .collect();
        let (mut all, mut sums) = (Vec::new(), Vec::new());
        for _ in 0..self.seeds {
            let seed_effect = self.of_seed * normal(chance);
            let sum = |(effect, n): (&f64, &f64)| {
                (TRUTH + seed_effect + effect + self.noise * normal(chance)) * n
            };
            sums.push(block_effect.iter().zip(&requests).map(sum).collect());
            all.push(requests.clone());
        }
        (all, sums)
    }

    /// Share of recordings whose 95 % interval holds the truth.
    fn coverage(self, recordings: usize) -> f64 {
        let mut chance = Chance::new(11);
        let held = (0..recordings).filter(|&n| {
            let (requests, sums) = self.draw(&mut chance);
            let [estimate] = paired_estimates(&requests, &[sums], n as u64)[..] else {
                panic!("one comparison, one estimate")
            };
            let [low, high] = estimate.interval(0.05);
            (low..=high).contains(&TRUTH)
        });
        held.count() as f64 / recordings as f64
    }
}

#[test]
fn an_interval_holds_the_truth_at_its_level() {
    let plain = World {
        seeds: 5,
        blocks: 96,
        of_seed: 0.0,
        of_block: 1.0,
        memory: 0.0,
        noise: 0.0,
    };
    let worlds = [
        ("blocks alone", plain),
        (
            "few blocks",
            World {
                blocks: 12,
                ..plain
            },
        ),
        (
            "a short night",
            World {
                blocks: 17,
                ..plain
            },
        ),
        (
            "blocks that hang together",
            World {
                memory: 0.25,
                ..plain
            },
        ),
        (
            "few that hang together",
            World {
                blocks: 17,
                memory: 0.3,
                ..plain
            },
        ),
        (
            "noise alone",
            World {
                of_block: 0.0,
                noise: 1.0,
                ..plain
            },
        ),
        (
            "seeds count too",
            World {
                of_seed: 0.3,
                noise: 1.0,
                ..plain
            },
        ),
        (
            "one seed",
            World {
                seeds: 1,
                noise: 1.0,
                ..plain
            },
        ),
    ];
    for (name, world) in worlds {
        let coverage = world.coverage(400);
        println!("{name}: {coverage}");
        // 400 recordings: the standard error of the coverage is 0.011
        assert!((0.915..=0.99).contains(&coverage), "{name}: {coverage}");
    }
}

#[test]
fn the_noise_within_blocks_is_not_counted_twice() {
    let mut chance = Chance::new(5);
    let world = World {
        seeds: 5,
        blocks: 60,
        of_seed: 0.0,
        of_block: 0.0,
        memory: 0.0,
        noise: 1.0,
    };
    let errors: Vec<f64> = (0..100)
        .map(|n| {
            let (requests, sums) = world.draw(&mut chance);
            paired_estimates(&requests, &[sums], n)[0].error
        })
        .collect();
    let mean = errors.iter().sum::<f64>() / 100.0;
    let true_error = 1.0 / f64::sqrt(300.0);
    assert!(
        (0.95..1.3).contains(&(mean / true_error)),
        "{mean} for {true_error}"
    );
}

#[test]
fn equal_settings_have_an_interval_of_nothing() {
    let requests = vec![vec![10.0; 20]; 3];
    let sums = vec![vec![0.0; 20]; 3];
    let estimates = paired_estimates(&requests, &[sums], 1);
    assert_eq!(holm_intervals(&estimates, 0.05), [[0.0, 0.0]]);
    let none = paired_estimates(&[vec![0.0; 4]], &[vec![vec![0.0; 4]]], 1);
    assert_eq!((none[0].diff, none[0].error), (0.0, 0.0));
}

#[test]
fn holm_judges_the_surest_most_strictly_and_stops_at_the_first_doubt() {
    let of = |diff: f64| Estimate {
        diff,
        error: 1.0,
        freedom: 1e6,
    };
    // z for 0.05/3 and 0.05/2, two-sided
    let (third, half) = (2.394, 2.241);
    let close = |interval: [f64; 2], diff: f64, reach: f64| {
        let off = (interval[0] - diff + reach).abs() + (interval[1] - diff - reach).abs();
        assert!(off < 0.01, "{interval:?} around {diff} by {reach}");
    };
    let told = holm_intervals(&[of(1.0), of(-9.0), of(0.5)], 0.05);
    close(told[1], -9.0, third);
    close(told[0], 1.0, half);
    close(told[2], 0.5, half);
    // excluded from 0 exactly when rejected in its turn
    let told = holm_intervals(&[of(2.3), of(2.5), of(1.97)], 0.05);
    assert!(told.iter().all(|interval| interval[0] > 0.0), "{told:?}");
    let told = holm_intervals(&[of(2.3), of(2.35), of(1.97)], 0.05);
    assert!(told.iter().all(|interval| interval[0] < 0.0), "{told:?}");
}

/// Of families in which nothing differs, about 95 of 100 have no interval that leaves out 0.
#[test]
fn a_family_of_equals_is_rarely_called_different() {
    let world = World {
        seeds: 5,
        blocks: 30,
        of_seed: 0.1,
        of_block: 0.5,
        memory: 0.2,
        noise: 1.0,
    };
    let mut chance = Chance::new(3);
    let quiet = (0..200).filter(|&n| {
        let mut family = Vec::new();
        let mut requests = Vec::new();
        for _ in 0..4 {
            let (asked, mut sums) = world.draw(&mut chance);
            for (sums, asked) in sums.iter_mut().zip(&asked) {
                for (sum, n) in sums.iter_mut().zip(asked) {
                    *sum -= TRUTH * n;
                }
            }
            requests = asked;
            family.push(sums);
        }
        let estimates = paired_estimates(&requests, &family, n);
        let intervals = holm_intervals(&estimates, 0.05);
        intervals.iter().all(|i| i[0] <= 0.0 && i[1] >= 0.0)
    });
    let share = quiet.count() as f64 / 200.0;
    assert!(share >= 0.91, "{share}");
}
