//! `kheya explain` and what it is made of: swap costs against deciding again with the pair forced,
//! and the words a dispatcher reads.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod chance;
mod command_line;
mod worlds;

use chance::fixed_cases;
use command_line::{Desk, Ran, run};
use kheya::{
    decision::{Batch, RequestExplanation, decide_batch, explain_request, write_window},
    domain::CostMs,
    eta::StraightLine,
};
use kheya_solver::{Graph, Options, solve};
use proptest::prelude::*;
use serde_json::{Value, json};
use worlds::by_hand::{driver, request, window};
use worlds::window_parts::{WindowParts, searched, with_edges};

fn decided(parts: &WindowParts) -> Batch {
    let snapshot = parts.snapshot();
    let eta = StraightLine::of(snapshot.config());
    decide_batch(&snapshot, &eta, &Options::default(), |_| ()).unwrap()
}

/// The least cost of a window's candidates without one request and one driver.
fn optimum_without(parts: &WindowParts, batch: &Batch, request: usize, driver: u32) -> i64 {
    let table = &batch.table;
    let rows = 0..table.rows();
    let unmatched = rows.clone().map(|row| {
        let taking_part = row != request;
        i64::from(taking_part) * table.unmatched_cost(row).get()
    });
    let edges = rows.flat_map(|row| {
        let others = table.row(row).iter();
        let others = others.filter(move |c| row != request && c.driver != driver);
        others.map(move |c| (row as u32, c.driver, c.cost.get()))
    });
    let graph = Graph::from_edges(
        table.rows(),
        parts.drivers.len(),
        unmatched.collect(),
        edges,
    );
    solve(&graph.unwrap(), &Options::default())
        .unwrap()
        .objective
}

fn ms(seconds: f64) -> i64 {
    CostMs::from_seconds(seconds).get()
}

fn check(parts: &WindowParts) {
    let (snapshot, batch) = (parts.snapshot(), decided(parts));
    for (row, pending) in snapshot.requests().iter().enumerate() {
        let id = &pending.request.id;
        let told = explain_request(&snapshot, &batch, id.as_str()).unwrap();
        let pair = batch
            .decision
            .assignments
            .iter()
            .find(|a| a.request_id == *id);
        let left = batch
            .decision
            .unmatched
            .iter()
            .find(|u| u.request_id == *id);
        assert_eq!(told.driver_id.as_ref(), pair.map(|pair| &pair.driver_id));
        assert_eq!(told.reason, left.map(|left| left.reason));
        let candidates = batch.table.row(row).iter();
        let listed = candidates.filter(|c| pair.is_none_or(|pair| c.eta_s < pair.eta_s));
        let listed: Vec<_> = listed.collect();
        assert_eq!(told.candidates.len(), listed.len());
        for (candidate, told) in listed.into_iter().zip(&told.candidates) {
            let name = &snapshot.drivers()[candidate.driver as usize].id;
            assert_eq!((&told.driver_id, told.eta_s), (name, candidate.eta_s));
            let rest = optimum_without(parts, &batch, row, candidate.driver);
            let forced = candidate.cost.get() + rest - batch.decision.objective.get();
            assert_eq!(ms(told.swap_cost_s), forced, "{id} with {name}");
            assert!((0..=forced).contains(&ms(told.swap_cost_at_least_s)));
            let paid = told.path.iter();
            let more: i64 = paid
                .map(|step| ms(step.to_cost_s) - ms(step.from_cost_s))
                .sum();
            assert_eq!(more, forced, "the path costs what the swap costs");
        }
    }
}

proptest! {
    #![proptest_config(fixed_cases(60))]

    #[test]
    fn a_swap_costs_what_deciding_again_with_the_pair_costs(
        parts in prop_oneof![searched(14, 18), with_edges(16, 12)]
    ) {
        check(&parts);
    }

    #[test]
    fn an_explanation_does_not_depend_on_the_order_of_the_file(
        parts in searched(14, 18), seed in any::<u64>()
    ) {
        let told = |parts: &WindowParts| -> Vec<RequestExplanation> {
            let (snapshot, batch) = (parts.snapshot(), decided(parts));
            let ids = snapshot.requests().iter().map(|p| p.request.id.as_str());
            ids.map(|id| explain_request(&snapshot, &batch, id).unwrap()).collect()
        };
        prop_assert_eq!(told(&parts), told(&parts.shuffled(seed)));
    }
}

/// Three riders and three cars: d7 is nearest to both r1 and r3, and r3 has nothing else near.
fn three_riders() -> Value {
    json!({
        "requests": [{"id": "r1"}, {"id": "r3"}, {"id": "r9"}],
        "drivers": [{"id": "d2"}, {"id": "d7"}, {"id": "d8"}, {"id": "x", "status": "busy"}],
        "edges": [
            {"request_id": "r1", "driver_id": "d7", "eta_s": 90},
            {"request_id": "r1", "driver_id": "d2", "eta_s": 130},
            {"request_id": "r3", "driver_id": "d7", "eta_s": 60},
            {"request_id": "r3", "driver_id": "d8", "eta_s": 270},
            {"request_id": "r3", "driver_id": "d2", "eta_s": 170},
        ],
    })
}

fn explain(file: &str, request: &str, more: &[&str]) -> Ran {
    run([&["explain", file, "--request", request], more].concat())
}

#[test]
fn a_dispatcher_reads_why_a_rider_got_a_car_that_is_not_the_nearest() {
    let desk = Desk::new();
    let file = desk.file("window.json", three_riders().to_string());
    let told = explain(&file, "r1", &[]).done().stdout;
    let wanted = "\
Rider r1 got car d2, 2 min 10 s away.
Of the 2 cars in reach one is nearer:

Car d7 is 1 min 30 s away, 40 s nearer; it went to rider r3, who would otherwise wait 1 min 50 s more. \
Giving it to r1 would cost all riders together 1 min 10 s more.
    r1: d2 (2 min 10 s) → d7 (1 min 30 s)
    r3: d7 (1 min) → d2 (2 min 50 s)

Cars that nobody could get: 1 busy.
";
    assert_eq!(told, wanted);
    let told = explain(&file, "r3", &[]).done().stdout;
    assert!(
        told.contains("Of the 3 cars in reach none is nearer."),
        "{told}"
    );
    let told = explain(&file, "r9", &[]).done().stdout;
    assert!(
        told.starts_with("Rider r9 got no car: no free car is in reach."),
        "{told}"
    );
}

#[test]
fn a_constraint_that_does_not_bind_is_told_and_one_that_binds_is_refused() {
    let desk = Desk::new();
    let under = |constraint: Value| {
        let mut window = three_riders();
        window["constraints"] = json!([constraint]);
        desk.file("window.json", window.to_string())
    };
    let plain = desk.file("plain.json", three_riders().to_string());
    let plain = explain(&plain, "r1", &[]).done().stdout;
    for slack in [
        json!({"name": "vans", "drivers": ["d2", "d7"], "max": 2}),
        json!({"name": "all", "min": 1}),
    ] {
        let told = explain(&under(slack), "r1", &[]).done().stdout;
        let rest = told.strip_prefix(&plain).unwrap();
        assert!(
            rest.contains("a side constraint is not looked at"),
            "{told}"
        );
    }
    let bound = under(json!({"name": "vans", "drivers": ["d2", "d7"], "max": 1}));
    explain(&bound, "r1", &[]).refused(&["window.json", "side constraints bind"]);
}

#[test]
fn the_json_names_the_whole_path() {
    let desk = Desk::new();
    let file = desk.file("window.json", three_riders().to_string());
    let told = explain(&file, "r1", &["--format", "json"]).json();
    let wanted = json!({
        "request_id": "r1", "driver_id": "d2", "eta_s": 130.0, "cost_s": 130.0,
        "unmatched_cost_s": 900.0, "candidates_total": 2, "excluded": {"busy": 1},
        "candidates": [{
            "driver_id": "d7", "eta_s": 90.0, "cost_s": 90.0, "held_by": "r3",
            "swap_cost_s": 70.0, "swap_cost_at_least_s": told["candidates"][0]["swap_cost_at_least_s"],
            "path": [
                {"request_id": "r1", "from_driver_id": "d2", "from_eta_s": 130.0, "from_cost_s": 130.0,
                 "to_driver_id": "d7", "to_eta_s": 90.0, "to_cost_s": 90.0},
                {"request_id": "r3", "from_driver_id": "d7", "from_eta_s": 60.0, "from_cost_s": 60.0,
                 "to_driver_id": "d2", "to_eta_s": 170.0, "to_cost_s": 170.0},
            ],
        }],
    });
    assert_eq!(told, wanted);
}

#[test]
fn weights_are_told_beside_the_eta_and_a_budget_or_greedy_rule_is_left_out() {
    // d1 is nearer, but has refused half its offers; leaving b for e costs less
    let mut parts = window(
        vec![request("a", 0.0)],
        vec![driver("d1", 300.0), driver("d2", 500.0)],
    );
    parts.set(&json!({"redispatch_s": 120}));
    parts.drivers[0].acceptance_rate = Some(0.5);
    let desk = Desk::new();
    let file = desk.file("window.json", write_window(&parts.snapshot()).unwrap());
    let told = explain(&file, "a", &[]).done().stdout;
    assert!(told.contains("Rider a got car d2, 50 s away.\n"), "{told}");
    let nearer = "Car d1 is 30 s away (counts as 1 min 30 s), 20 s nearer; it stays free. \
        Giving it to a would cost all riders together 40 s more.\n    car d2 would be free\n";
    assert!(told.contains(nearer), "{told}");

    let mut asked = three_riders();
    asked["method"] = "greedy-edge".into();
    asked["budget_ms"] = 1.into();
    let file = desk.file("asked.json", asked.to_string());
    let told = explain(&file, "r1", &[]).done().stdout;
    assert!(told.contains("greedy rule was not used"), "{told}");
}

#[test]
fn a_rider_without_a_car_is_told_what_each_candidate_would_cost() {
    let desk = Desk::new();
    let body = json!({
        "requests": [{"id": "a", "unmatched_cost_s": 100}, {"id": "b", "unmatched_cost_s": 100},
                     {"id": "c", "unmatched_cost_s": 20, "max_pickup_eta_s": 90}],
        "drivers": [{"id": "x"}],
        "edges": [{"request_id": "a", "driver_id": "x", "eta_s": 10},
                  {"request_id": "b", "driver_id": "x", "eta_s": 17.5},
                  {"request_id": "c", "driver_id": "x", "eta_s": 80}],
    });
    let file = desk.file("window.json", body.to_string());
    let told = explain(&file, "b", &[]).done().stdout;
    let wanted = "\
Rider b got no car: the cars in reach are worth more to others. A rider without a car counts as 1 min 40 s.
One car was in reach:

Car x is 18 s away; it went to rider a, who would otherwise get no car. Giving it to b would cost all riders together 7.5 s more.
    b: no car (counts as 1 min 40 s) → x (18 s)
    a: x (10 s) → no car (counts as 1 min 40 s)
";
    assert_eq!(told, wanted);
    let told = explain(&file, "c", &[]).done().stdout;
    assert!(
        told.contains("counts for at least as much as leaving the rider without one"),
        "{told}"
    );
}

#[test]
fn what_cannot_be_explained_is_refused_with_the_place() {
    let desk = Desk::new();
    let file = desk.file("window.json", three_riders().to_string());
    explain(&file, "r", &[]).refused(&["window.json", "\"r\"", "\"r1\"", "\"r3\""]);
    explain(&file, &"r".repeat(100_000), &[]).refused(&["window.json", "\"r1\""]);
    let empty = json!({"requests": [], "drivers": []}).to_string();
    explain(&desk.file("empty.json", empty), "r1", &[]).refused(&["it has none at all"]);
    let asn = "p asn 1 1 1\nc unmatched_cost 9\na 0 0 1\n";
    explain(&desk.file("one.asn", asn), "0", &[]).refused(&["one.asn", "WINDOW.json"]);
    explain(&desk.file("cut.json", "{\"requests\":"), "0", &[]).refused(&["cut.json"]);
    run(["explain", &file]).refused(&["--request"]);
}
