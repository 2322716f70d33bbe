//! A small fuzzer for every run of the tests: seeded bytes, mutated, through all that must hold for
//! any bytes. `KHEYA_FUZZ_CASES=1000000 cargo test -p kheya-solver --test mutated_bytes` runs
//! longer; coverage-guided targets of the same checks stand in `fuzz/`.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod arbitrary_bytes;
mod random_graphs;

use arbitrary_bytes::{check_asn, check_graph};
use random_graphs::Random;

/// How many cases a test runs.
fn cases() -> u64 {
    match std::env::var("KHEYA_FUZZ_CASES") {
        Ok(cases) => cases.parse().expect("KHEYA_FUZZ_CASES is a number"),
        Err(_) => 20_000,
    }
}

/// Changes a few bytes: set, flipped, removed, doubled, or a piece of another text put in.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random, pieces: &[&str]) {
    for _ in 0..=random.within(0..=3) {
        let at = random.within(0..=bytes.len() as i64) as usize;
        let to = (at + random.within(0..=9) as usize).min(bytes.len());
        match random.next() % 5 {
            0 => drop(bytes.drain(at..to)),
            1 => bytes.extend_from_within(at..to),
            2 => bytes.insert(at, random.next() as u8),
            3 => bytes[at..to]
                .iter_mut()
                .for_each(|byte| *byte ^= 1 << (random.next() % 8)),
            _ => {
                let piece = pieces[(random.next() % pieces.len() as u64) as usize];
                bytes.splice(at..to, piece.bytes());
            }
        }
    }
}

/// Runs a check on one case after another; a case that fails is told by its seed and bytes. At least
/// a quarter of the cases must have got as far as a solve.
fn fuzz(
    seed: u64,
    start: impl Fn(&mut Random) -> Vec<u8>,
    pieces: &[&str],
    check: fn(&[u8]) -> usize,
) {
    let mut solved = 0;
    for case in 0..cases() {
        let mut random = Random::new(seed ^ (case << 8));
        let mut bytes = start(&mut random);
        if case % 4 != 0 {
            mutate(&mut bytes, &mut random, pieces);
        }
        let graphs = std::panic::catch_unwind(|| check(&bytes));
        let graphs = graphs.unwrap_or_else(|_| panic!("case {case} of seed {seed}: {bytes:?}"));
        solved += u64::from(graphs > 0);
    }
    assert!(
        solved > cases() / 4,
        "only {solved} of {} were solved",
        cases()
    );
}

#[test]
fn any_bytes_are_a_graph_that_is_solved_or_refused() {
    let start = |random: &mut Random| {
        let length = random.within(0..=700);
        (0..length).map(|_| random.next() as u8).collect()
    };
    fuzz(
        1,
        start,
        &["\0\0\0\0", "\x01", "\x02", "\x7f\x07\x37"],
        check_graph,
    );
}

#[test]
fn any_bytes_are_an_instance_or_refused_with_the_file() {
    let start = |random: &mut Random| {
        let (requests, drivers) = (random.within(0..=6), random.within(1..=6));
        let edges = random.within(0..=8) * requests.min(1);
        let mut text = format!("p asn {requests} {drivers} {edges}\nc unmatched_cost 90\n");
        for _ in 0..edges {
            let mut below = |count: i64| random.within(0..=count - 1).to_string();
            let edge = [below(requests), below(drivers), below(99)];
            text.extend(["a ", &edge.join(" "), "\n"]);
        }
        text.into_bytes()
    };
    let pieces = [
        "p asn 1 1 1\n",
        "c a comment\n",
        "\n",
        "c unmatched_cost ",
        "a 0 0 ",
        "-9223372036854775808",
        "9223372036854775807",
        "4294967295",
        "4611686018427387904",
        "\r\n",
        "\0",
        "-",
        "\u{feff}",
        "1e3",
        "nan",
    ];
    fuzz(2, start, &pieces, check_asn);
}
