//! What a sweep concludes, on toy worlds whose truth is known.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod chance;
mod worlds;

use std::path::Path;

use chance::Chance;
use jiff::tz::TimeZone;
use kheya::{
    config::{RegionConfig, ServeConfig},
    domain::{DurationMs, Place, RegionId, RequestId, UnixMs},
    replay::{
        Behaviour, Policy, TripEndError,
        input::{Demand, Trip},
        tune::{Axis, Rules, Sweep, TuneFleet, TunePlan, TuneReport, Verdict, config_fragment},
    },
};
use worlds::by_hand::{NIGHT_FROM, input_of};

/// A small town for `minutes` minutes.
fn town(seed: u64, minutes: i64, requests: usize) -> Demand {
    let mut chance = Chance::new(seed);
    let mut place = || {
        let step = 0.03;
        Place::new(23.75 + step * chance.unit(), 90.39 + step * chance.unit()).unwrap()
    };
    let places: Vec<(Place, Place)> = (0..requests).map(|_| (place(), place())).collect();
    let mut trips: Vec<Trip> = places
        .into_iter()
        .enumerate()
        .map(|(n, (pickup, dropoff))| Trip {
            request_id: RequestId::new(&format!("r{n:06}")).unwrap(),
            requested_at: NIGHT_FROM
                + DurationMs::new(chance.below((minutes * 60_000) as usize) as i64),
            pickup,
            dropoff,
            trip_s: Some(300.0),
        })
        .collect();
    trips.sort_by(|a, b| (a.requested_at, &a.request_id).cmp(&(b.requested_at, &b.request_id)));
    let report = input_of(&trips);
    Demand { trips, report }
}

fn axis<T: PartialOrd + Copy + std::fmt::Display>(values: &[T]) -> Axis<T> {
    Axis::new("--values", values.to_vec(), values[0]).unwrap()
}

fn plan(windows_ms: &[i64], drivers: u32, seeds: u64) -> TunePlan {
    let windows: Vec<DurationMs> = windows_ms.iter().map(|&ms| DurationMs::new(ms)).collect();
    let config = RegionConfig::default();
    TunePlan {
        demand_model: None,
        windows: axis(&windows),
        max_pickup_eta_s: axis(&[900.0]),
        age_weight: axis(&[0.0]),
        plan_ahead: axis(&[DurationMs::ZERO]),
        demand_ahead: axis(&[DurationMs::ZERO]),
        trip_end_error: TripEndError::default(),
        config,
        fleets: vec![TuneFleet::Sampled(drivers)],
        seeds: (1..=seeds).collect(),
        rules: Rules {
            swept: Policy::Batch,
            beside: vec![],
            all_windows: false,
        },
        behaviour: Behaviour::default(),
        tz: TimeZone::UTC,
    }
}

fn tune(plan: &TunePlan, demand: &Demand) -> TuneReport {
    let sweep = Sweep::new(plan, demand, NIGHT_FROM).unwrap();
    sweep.run(&|_, _| ()).unwrap()
}

fn verdicts(report: &TuneReport) -> Vec<(i64, Verdict)> {
    let rows = report.sweep.iter();
    rows.map(|row| (row.setting.window_ms, row.comparison.verdict))
        .collect()
}

/// A hundred evenings of one town. The truth is the mean difference over all of them; each evening's
/// interval is to hold it.
#[test]
fn the_interval_of_a_replayed_evening_holds_the_truth() {
    const EVENINGS: u64 = 100;
    let plan = plan(&[2000, 8000], 30, 3);
    let mut told = Vec::new();
    for evening in 0..EVENINGS {
        let demand = town(evening, 100, 400);
        let report = tune(&plan, &demand);
        let row = report.sweep.iter().find(|row| !row.reference).unwrap();
        told.push((
            row.comparison.diff_s.unwrap(),
            row.comparison.interval_s.unwrap(),
        ));
    }
    let truth = told.iter().map(|(diff, _)| diff).sum::<f64>() / EVENINGS as f64;
    let held = told
        .iter()
        .filter(|(_, [low, high])| (*low..=*high).contains(&truth))
        .count();
    // a standard error of 2.2
    assert!(
        (88..=100).contains(&held),
        "{held} of {EVENINGS} hold {truth}"
    );
    let wide = told.iter().map(|(_, [low, high])| high - low).sum::<f64>() / EVENINGS as f64;
    let scatter = told
        .iter()
        .map(|(diff, _)| (diff - truth).powi(2))
        .sum::<f64>();
    let needed = 4.0 * (scatter / EVENINGS as f64).sqrt();
    assert!(
        wide < 1.8 * needed,
        "intervals of {wide} s where {needed} s would do"
    );
}

#[test]
fn a_planted_better_window_is_found() {
    // cars enough: whatever a window is longer, riders wait longer
    let report = tune(&plan(&[20_000, 2000, 10_000], 250, 3), &town(1, 100, 1200));
    assert_eq!(
        verdicts(&report),
        [
            (2000, Verdict::Better),
            (10_000, Verdict::Better),
            (20_000, Verdict::Equivalent)
        ]
    );
    let recommended = &report.recommended;
    assert_eq!((recommended.window_ms, recommended.change), (2000, true));
    assert!(
        recommended.reason.starts_with("2 s: it saves riders"),
        "{recommended:?}"
    );
    // half of the 18 seconds that the windows differ by
    let saved = -report.sweep[0].comparison.diff_s.unwrap();
    assert!((7.0..10.0).contains(&saved), "{saved}");
}

#[test]
fn equal_settings_are_called_equal() {
    let mut equal = plan(&[3000], 60, 3);
    // nobody is so far away in this town that the cap tells
    equal.max_pickup_eta_s = axis(&[900.0, 1200.0, 1500.0]);
    let report = tune(&equal, &town(2, 100, 1200));
    assert!(
        report
            .sweep
            .iter()
            .all(|row| row.comparison.verdict == Verdict::Equivalent)
    );
    assert!(!report.recommended.change);
    assert!(
        report.recommended.reason.starts_with("No difference"),
        "{report:?}"
    );

    // nearly equal windows: not the same replays, and no difference that anybody would feel
    let report = tune(&plan(&[3000, 3010], 60, 5), &town(3, 200, 6000));
    let row = report.sweep.iter().find(|row| !row.reference).unwrap();
    assert_ne!(row.comparison.diff_s, Some(0.0));
    assert!(!report.recommended.change, "{report:?}");
    assert!(
        report.recommended.reason.starts_with("No difference"),
        "{report:?}"
    );
}

#[test]
fn a_short_recording_is_not_enough() {
    let report = tune(&plan(&[3000, 1000], 20, 2), &town(4, 50, 300));
    assert!(report.sweep.iter().all(|row| {
        row.comparison.verdict == Verdict::NotEnoughData && row.comparison.interval_s.is_none()
    }));
    assert!(report.method.blocks < 12);
    assert_eq!(
        (report.recommended.window_ms, report.recommended.change),
        (3000, false)
    );
    assert!(report.recommended.reason.starts_with("Not enough data"));
}

#[test]
fn each_rule_stands_at_its_own_best_cap() {
    let mut plan = plan(&[3000], 25, 2);
    plan.max_pickup_eta_s = axis(&[900.0, 300.0, 100.0]);
    plan.rules.beside = vec![Policy::GreedyEdge, Policy::Greedy, Policy::GreedyNow];
    plan.rules.all_windows = true;
    let report = tune(&plan, &town(5, 100, 900));
    assert_eq!(report.sweep.len(), 12);
    for rule in &report.rules {
        let cost = |policy: &str| {
            let rows = report
                .sweep
                .iter()
                .filter(|row| row.setting.policy == policy);
            rows.map(|row| row.rider_cost_s.unwrap())
                .fold(f64::INFINITY, f64::min)
        };
        assert_eq!(rule.rule_rider_cost_s, Some(cost(rule.rule.policy)));
        assert_eq!(rule.ours_rider_cost_s, Some(cost("batch")));
        let diff = cost("batch") - cost(rule.rule.policy);
        assert!((rule.comparison.diff_s.unwrap() - diff).abs() < 1e-9);
    }
    let rules: Vec<&str> = report.rules.iter().map(|r| r.rule.policy).collect();
    assert_eq!(rules, ["greedy-edge", "greedy", "greedy-now"]);
    assert!(report.rules[1].note.contains("weak rule"));
}

#[test]
fn the_scored_requests_leave_out_warm_up_and_cool_down() {
    let demand = town(6, 100, 500);
    let report = tune(&plan(&[3000, 6000], 30, 2), &demand);
    let method = &report.method;
    let at = |minutes: i64| NIGHT_FROM + DurationMs::new(minutes * 60_000);
    assert!(method.scored_from_ms > at(8) && method.scored_from_ms <= at(10));
    assert!(method.scored_to_ms >= at(89) && method.scored_to_ms < at(92));
    let scored = |t: UnixMs| t >= method.scored_from_ms && t < method.scored_to_ms;
    let wanted = demand
        .trips
        .iter()
        .filter(|trip| scored(trip.requested_at))
        .count();
    for row in &report.sweep {
        assert_eq!(row.requests, 2 * wanted as u64);
    }
    let blocks: u64 = report
        .blocks
        .iter()
        .map(|row| u64::from(row.requests))
        .sum();
    assert_eq!(blocks, 4 * wanted as u64);
}

#[test]
fn looking_ahead_is_swept_with_the_window_by_batch_alone() {
    let mut asked = plan(&[2000, 4000], 25, 2);
    let times =
        |all: &[i64]| -> Vec<DurationMs> { all.iter().map(|&ms| DurationMs::new(ms)).collect() };
    asked.plan_ahead = axis(&times(&[0, 30_000]));
    asked.demand_ahead = axis(&times(&[0, 60_000]));
    asked.rules.beside = vec![Policy::GreedyEdge];
    let report = tune(&asked, &town(3, 100, 500));
    let batch: Vec<(i64, i64, i64)> = report
        .sweep
        .iter()
        .filter(|row| row.setting.policy == "batch")
        .map(|row| {
            let setting = &row.setting;
            (
                setting.window_ms,
                setting.plan_ahead_ms,
                setting.demand_ahead_ms,
            )
        })
        .collect();
    let mut every = Vec::new();
    for window in [2000, 4000] {
        for plan in [0, 30_000] {
            every.extend([0, 60_000].map(|demand| (window, plan, demand)));
        }
    }
    assert_eq!(batch, every);
    let beside: Vec<_> = report
        .sweep
        .iter()
        .filter(|row| row.setting.policy != "batch")
        .collect();
    assert!(
        beside
            .iter()
            .all(|row| row.setting.plan_ahead_ms == 0 && row.setting.demand_ahead_ms == 0)
    );
    assert_eq!(beside.len(), 1);
    // what is looked ahead to is known with an error, and every report says so
    assert_eq!(report.method.trip_end_error, Some(0.3));
    assert!(
        report
            .notes
            .iter()
            .any(|note| note.contains("standard deviation 0.3"))
    );
    let compared = report
        .sweep
        .iter()
        .filter(|row| !row.reference && row.setting.policy == "batch");
    assert!(
        compared
            .clone()
            .all(|row| row.comparison.interval_s.is_some())
    );
    assert!(
        compared
            .map(|row| row.comparison.diff_s.unwrap())
            .any(|diff| diff < 0.0)
    );
    let hour = &report.by_hour[0];
    assert_eq!(hour.sweep.len(), every.len());
    assert!(
        report.recommended.reason.contains("plan ")
            && report.recommended.reason.contains("demand ")
    );
    assert_eq!(
        tune(&plan(&[2000], 25, 1), &town(3, 100, 500))
            .method
            .trip_end_error,
        None
    );
}

#[test]
fn what_was_tried_of_looking_ahead_is_written_even_where_none_is_recommended() {
    let times = [0, 30_000].map(DurationMs::new);
    let demand = town(3, 60, 100);
    let base = plan(&[2000], 25, 1);
    let fragment = |plan: &TunePlan| {
        let mut report = tune(plan, &demand);
        (
            report.recommended.plan_ahead_ms,
            report.recommended.demand_ahead_ms,
        ) = (0, 0);
        let text = config_fragment(&report, &plan.config, &[], None, None).unwrap();
        let table: toml::Table = text.parse().unwrap();
        let settings = &table["region_defaults"];
        ["plan_ahead_ms", "demand_ahead_ms"]
            .map(|name| settings.get(name).and_then(toml::Value::as_integer))
    };
    let plans = TunePlan {
        plan_ahead: axis(&times),
        ..base.clone()
    };
    let demands = TunePlan {
        demand_ahead: axis(&times),
        ..base.clone()
    };
    assert_eq!(fragment(&plans), [Some(0), Some(0)]);
    assert_eq!(fragment(&demands), [Some(0), Some(0)]);
    assert_eq!(fragment(&base), [None, None]);
}

#[test]
fn a_recommended_model_is_named_where_a_node_reads_it() {
    let plan = plan(&[2000], 25, 1);
    let mut report = tune(&plan, &town(3, 60, 100));
    let file = Path::new("/srv/kheya/\"learned\"/demand.json");
    let region = RegionId::new("dhaka").unwrap();
    let fragment = |report: &TuneReport, region: Option<&RegionId>| {
        let text = config_fragment(report, &plan.config, &[], region, Some(file)).unwrap();
        ServeConfig::load(Some((Path::new("tuned.toml"), &text)), [], Vec::new())
            .unwrap()
            .demand_models
    };
    assert!(fragment(&report, Some(&region)).is_empty());
    report.recommended.learned_demand = true;
    assert_eq!(
        fragment(&report, Some(&region)),
        [(region.clone(), file.to_owned())].into()
    );
    // without a region there is none to name it for
    assert!(fragment(&report, None).is_empty());
}
