//! The intervals of a sweep hold the truth as often as they say.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod chance;

use chance::Chance;
use kheya::replay::tune::{DrawnFrom, Estimate, holm_intervals, paired_estimates};

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
    /// How far the difference moves, in a straight line, from the first block to the last.
    course: f64,
}

const TRUTH: f64 = 3.0;

fn normal(chance: &mut Chance) -> f64 {
    // twelve even draws: near enough to normal
    (0..12).map(|_| chance.unit()).sum::<f64>() - 6.0
}

impl World {
    /// One recording: requests and summed differences by seed and block, and the true difference.
    fn draw(self, chance: &mut Chance) -> (Vec<Vec<f64>>, Vec<Vec<f64>>, f64) {
        let mut block_effect = Vec::new();
        let mut last = normal(chance);
        for _ in 0..self.blocks {
            block_effect.push(self.of_block * last);
            last = self.memory * last + (1.0 - self.memory * self.memory).sqrt() * normal(chance);
        }
        let course =
            |block: usize| TRUTH + self.course * (block as f64 / (self.blocks - 1) as f64 - 0.5);
        let requests: Vec<f64> = (0..self.blocks)
            .map(|_| 50.0 + (100.0 * chance.unit()).floor())
            .collect();
        let true_sum: f64 = (0..self.blocks).map(|b| course(b) * requests[b]).sum();
        let truth = true_sum / requests.iter().sum::<f64>();
        let (mut all, mut sums) = (Vec::new(), Vec::new());
        for _ in 0..self.seeds {
            let seed_effect = self.of_seed * normal(chance);
            let sum = |block: usize| {
                let chance = self.noise * normal(chance);
                (course(block) + seed_effect + block_effect[block] + chance) * requests[block]
            };
            sums.push((0..self.blocks).map(sum).collect());
            all.push(requests.clone());
        }
        (all, sums, truth)
    }

    /// Share of recordings whose 95 % interval holds the truth, and their mean reach.
    fn coverage(self, from: DrawnFrom, recordings: usize) -> (f64, f64) {
        let mut chance = Chance::new(11);
        let (mut held, mut reach) = (0, 0.0);
        for n in 0..recordings {
            let (requests, sums, truth) = self.draw(&mut chance);
            let [estimate] = paired_estimates(&requests, &[sums], from, n as u64)[..] else {
                panic!("one comparison, one estimate")
            };
            let [low, high] = estimate.interval(0.05);
            held += usize::from((low..=high).contains(&truth));
            reach += (high - low) / 2.0;
        }
        (held as f64 / recordings as f64, reach / recordings as f64)
    }
}

/// Blocks that scatter and nothing else.
const PLAIN: World = World {
    seeds: 5,
    blocks: 96,
    of_seed: 0.0,
    of_block: 1.0,
    memory: 0.0,
    noise: 0.0,
    course: 0.0,
};

/// The same with other numbers of blocks.
const fn of_blocks(blocks: usize) -> World {
    World { blocks, ..PLAIN }
}

#[test]
fn an_interval_holds_the_truth_at_its_level() {
    use DrawnFrom::{Anywhere, Nearby};
    let noisy = World {
        of_block: 0.0,
        noise: 1.0,
        ..PLAIN
    };
    let worlds = [
        ("blocks alone", PLAIN),
        ("few blocks", of_blocks(12)),
        ("a short night", of_blocks(17)),
        (
            "blocks that hang together",
            World {
                memory: 0.25,
                ..PLAIN
            },
        ),
        (
            "few that hang together",
            World {
                memory: 0.25,
                ..of_blocks(17)
            },
        ),
        ("noise alone", noisy),
        (
            "seeds count too",
            World {
                of_seed: 0.3,
                ..noisy
            },
        ),
        ("one seed", World { seeds: 1, ..noisy }),
    ];
    for (name, world) in worlds {
        for from in [Anywhere, Nearby] {
            let (coverage, reach) = world.coverage(from, 400);
            println!("{name}, {from:?}: {coverage}, ± {reach}");
            // 400 recordings: the standard error of the coverage is 0.011
            assert!(
                (0.9..=0.99).contains(&coverage),
                "{name}, {from:?}: {coverage}"
            );
        }
    }
}

#[test]
fn the_course_of_an_evening_is_no_chance() {
    let evening = World {
        course: 10.0,
        ..of_blocks(17)
    };
    let (coverage, reach) = evening.coverage(DrawnFrom::Nearby, 400);
    assert!((0.915..=1.0).contains(&coverage), "{coverage}");
    let (_, level) = of_blocks(17).coverage(DrawnFrom::Nearby, 100);
    let (_, anywhere) = evening.coverage(DrawnFrom::Anywhere, 100);
    println!("{coverage}: {reach} of {anywhere}, {level} on the level");
    assert!(reach < 0.65 * anywhere, "{reach} of {anywhere}");
}

#[test]
fn the_noise_within_blocks_is_not_counted_twice() {
    let mut chance = Chance::new(5);
    let world = World {
        of_block: 0.0,
        noise: 1.0,
        ..of_blocks(60)
    };
    let errors: Vec<f64> = (0..100)
        .map(|n| {
            let (requests, sums, _) = world.draw(&mut chance);
            paired_estimates(&requests, &[sums], DrawnFrom::Anywhere, n)[0].error
        })
        .collect();
    let mean = errors.iter().sum::<f64>() / 100.0;
    let true_error = 1.0 / f64::sqrt(300.0);
    let ratio = mean / true_error;
    assert!((0.95..1.3).contains(&ratio), "{mean} for {true_error}");
}

#[test]
fn equal_settings_have_an_interval_of_nothing() {
    let requests = vec![vec![10.0; 20]; 3];
    let sums = vec![vec![0.0; 20]; 3];
    let estimates = paired_estimates(&requests, &[sums], DrawnFrom::Nearby, 1);
    assert_eq!(holm_intervals(&estimates, 0.05), [[0.0, 0.0]]);
    let none = paired_estimates(
        &[vec![0.0; 4]],
        &[vec![vec![0.0; 4]]],
        DrawnFrom::Anywhere,
        1,
    );
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
        of_seed: 0.1,
        of_block: 0.5,
        memory: 0.2,
        noise: 1.0,
        ..of_blocks(30)
    };
    let mut chance = Chance::new(3);
    let quiet = (0..200).filter(|&n| {
        let mut family = Vec::new();
        let mut requests = Vec::new();
        for _ in 0..4 {
            let (asked, mut sums, truth) = world.draw(&mut chance);
            for (sums, asked) in sums.iter_mut().zip(&asked) {
                for (sum, n) in sums.iter_mut().zip(asked) {
                    *sum -= truth * n;
                }
            }
            requests = asked;
            family.push(sums);
        }
        let estimates = paired_estimates(&requests, &family, DrawnFrom::Anywhere, n);
        let intervals = holm_intervals(&estimates, 0.05);
        intervals.iter().all(|i| i[0] <= 0.0 && i[1] >= 0.0)
    });
    let share = quiet.count() as f64 / 200.0;
    assert!(share >= 0.91, "{share}");
}
