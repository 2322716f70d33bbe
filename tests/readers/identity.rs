//! Ids: given, repeated, numbered; fare reversals; samples; any order of rows and files.

use std::fmt::Write as _;

use kheya::replay::input::{ReadOptions, Reason, read_demand};
use proptest::prelude::*;

use crate::harness::{PLAIN, among_good, file, ids, options, read, read_with, refusal, rejected};

#[test]
fn of_a_repeated_id_the_first_in_time_stays() {
    let text = format!(
        "{PLAIN}a,2000,1,1,1,1,60\na,1000,1,1,1,1,60\na,1000,1,1,1,1,60\nb,1500,1,1,1,1,60\n"
    );
    let demand = read(&text);
    assert_eq!(ids(&demand), ["a", "b"]);
    assert_eq!(demand.trips[0].requested_at.get(), 1000);
    assert_eq!(
        rejected(&demand),
        [(Reason::DuplicateId, 1), (Reason::IdConflict, 1)]
    );
}

#[test]
fn trips_are_sorted_by_time_and_then_id_as_bytes() {
    let text = format!("{PLAIN}b,5,1,1,1,1,\na,5,1,1,1,1,\nB,5,1,1,1,1,\nz,4,1,1,1,1,\n");
    assert_eq!(ids(&read(text)), ["z", "B", "a", "b"]);
}

const FARES: &str = "lpep_pickup_datetime,lpep_dropoff_datetime,pickup_longitude,pickup_latitude,\
                     dropoff_longitude,dropoff_latitude,fare_amount,total_amount\n";

#[test]
fn of_fare_reversal_twins_the_positive_one_stays() {
    let trip = "2024-01-01 00:00:00,2024-01-01 00:10:00,-73.98,40.75,-73.97,40.76";
    let other = "2024-01-01 00:00:00,2024-01-01 00:11:00,-73.98,40.75,-73.97,40.76";
    let text =
        format!("{FARES}{trip},-10,-12.3\n{trip},10,12.3\n{trip},-10,-12.3\n{other},-10,-12.3\n");
    let demand = read(text);
    // One positive row has one twin: the second negative one is a trip of its own.
    assert_eq!(rejected(&demand), [(Reason::Reversal, 1)]);
    assert_eq!(demand.trips.len(), 3);
}

#[test]
fn twins_are_found_across_files() {
    let trip = "2024-01-01 00:00:00,2024-01-01 00:10:00,-73.98,40.75,-73.97,40.76";
    let one = file("a.csv", format!("{FARES}{trip},10,12.3\n"));
    let two = file("b.csv", format!("{FARES}{trip},-10,-12.3\n"));
    let demand = read_demand(
        &[one.path.clone(), two.path.clone()],
        &options(),
        &|_, _| {},
    )
    .unwrap();
    assert_eq!(rejected(&demand), [(Reason::Reversal, 1)]);
}

#[test]
fn rows_without_an_id_are_numbered_in_the_order_of_their_fields() {
    let mut text = "pickup_datetime,pickup_lat,pickup_lng,dropoff_lat,dropoff_lng\n".to_owned();
    for i in (0..11).rev() {
        writeln!(text, "2013-01-01 00:00:00,1.0{i:02},1,1,1").unwrap();
    }
    let demand = read(text);
    assert_eq!(ids(&demand)[0], "r00");
    assert_eq!(ids(&demand)[10], "r10");
    assert!(
        demand
            .trips
            .is_sorted_by(|a, b| a.pickup.lat() < b.pickup.lat())
    );
}

#[test]
fn numbers_never_meet_the_ids_of_another_file() {
    let with = file("a.csv", format!("{PLAIN}r0,1000,1,1,1,1,60\n"));
    let without = file(
        "b.csv",
        "requested_at_ms,pickup_lat,pickup_lng,dropoff_lat,dropoff_lng\n500,1,1,1,1\n",
    );
    let files = [with.path.clone(), without.path.clone()];
    let demand = read_demand(&files, &options(), &|_, _| {}).unwrap();
    assert_eq!(ids(&demand), ["r1", "r0"]);
}

#[test]
fn a_sample_is_drawn_by_id_and_seed_and_counted() {
    let mut text = PLAIN.to_owned();
    for i in 0..1000 {
        writeln!(text, "r{i},{i},1,1,1,1,60").unwrap();
    }
    let with = |share: f64, seed: u64| ReadOptions {
        sample: Some(share),
        seed,
        ..options()
    };
    let fifth = read_with(&text, &with(0.2, 1)).unwrap();
    let [(Reason::SampledOut, out)] = rejected(&fifth)[..] else {
        panic!("not sampled")
    };
    assert!((750..850).contains(&out), "{out}");
    let half = read_with(&text, &with(0.5, 1)).unwrap();
    assert!(
        ids(&fifth).iter().all(|id| ids(&half).contains(id)),
        "a smaller sample is within"
    );
    assert_ne!(ids(&read_with(&text, &with(0.2, 2)).unwrap()), ids(&fifth));
    assert_eq!(read_with(&text, &with(1.0, 1)).unwrap().trips.len(), 1000);
    for share in [0.0, -1.0, 1.5, f64::NAN] {
        assert!(refusal(&text, &with(share, 1)).starts_with("--sample"));
    }
}

#[test]
fn the_same_file_twice_is_refused() {
    let one = file("a.csv", among_good(&[]));
    let twice = [one.path.clone(), one.path.clone()];
    let said = read_demand(&twice, &options(), &|_, _| {})
        .unwrap_err()
        .to_string();
    assert!(said.ends_with("is given twice"), "{said}");
}

#[test]
fn the_order_of_the_files_changes_nothing() {
    let header = "pickup_datetime,pickup_lat,pickup_lng,dropoff_lat,dropoff_lng\n";
    let one = file(
        "a.csv",
        format!("{header}01/02/2013,1,1,1,1\n01/13/2013,1,1,1,1\n"),
    );
    // Its own dates would not tell their order: the column is one over both files.
    let two = file("b.csv", format!("{header}03/04/2013,1,1,1,1\n"));
    let read = |files: [&std::path::PathBuf; 2]| {
        read_demand(&files.map(Clone::clone), &options(), &|_, _| {}).unwrap()
    };
    let straight = read([&one.path, &two.path]);
    assert_eq!(straight.trips, read([&two.path, &one.path]).trips);
    assert_eq!(straight.trips[2].requested_at.get(), 1_362_355_200_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_order_of_the_rows_gives_the_same_demand(
        rows in proptest::collection::vec((0_u8..6, 0_u8..4, 0_u8..4, 0_u8..3, -1_i8..2), 1..40),
        seed in 0_u64..4, swap in any::<u64>(), with_ids in any::<bool>(),
    ) {
        let header = if with_ids { "request_id," } else { "" };
        let mut lines: Vec<String> = rows.iter().map(|(time, place, drop, id, fare)| {
            let id = if with_ids { format!("r{id},") } else { String::new() };
            let dropoff = match drop { 0 => "0,0".into(), d => format!("40.7{d},-73.9") };
            let pickup = match place { 0 => "95,0".into(), p => format!("40.7{p},-73.9") };
            format!("{id}2013-01-01 00:00:0{time},{pickup},{dropoff},{fare}\n")
        }).collect();
        let head = format!("{header}pickup_datetime,pickup_lat,pickup_lng,dropoff_lat,dropoff_lng,fare_amount\n");
        let options = ReadOptions {
            dropoff: kheya::replay::input::DropoffRule::Sample,
            sample: Some(0.8),
            seed,
            ..options()
        };
        let straight = read_with(head.clone() + &lines.concat(), &options);
        let mut state = swap;
        for i in (1..lines.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            lines.swap(i, (state >> 33) as usize % (i + 1));
        }
        let shuffled = read_with(head + &lines.concat(), &options);
        match (straight, shuffled) {
            (Ok(a), Ok(b)) => {
                prop_assert_eq!(a.trips, b.trips);
                prop_assert_eq!(a.report.rejected, b.report.rejected);
            }
            (a, b) => prop_assert!(a.is_err() && b.is_err()),
        }
    }
}
