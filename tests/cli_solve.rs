//! `kheya solve`, run as a user runs it: right answers, refusals that name the place, and time.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod chance;
mod command_line;
#[path = "../solver/tests/random_graphs/mod.rs"]
mod random_graphs;
mod worlds;

use std::collections::BTreeSet;

use command_line::{Desk, Ran, run};
use kheya::decision::write_window;
use kheya_solver::asn;
use random_graphs::geometric::Geometric;
use serde_json::{Value, json};
use worlds::by_hand::{driver, request, window};

const EXACT: [&str; 4] = ["auto", "sparse", "hungarian", "lp"];

fn solve(file: &str, more: &[&str]) -> Ran {
    run([&["solve", file], more].concat())
}

fn solved(file: &str, more: &[&str]) -> Value {
    solve(file, &[&["--format", "json"], more].concat()).json()
}

/// The `.asn` text of an instance whose unmatched cost is a million, and of one with its own.
fn instance(header: &str, edges: &str) -> String {
    format!("p asn {header}\nc unmatched_cost 1000000\n{edges}")
}

#[test]
fn small_instances_have_their_known_optimum_by_every_exact_method() {
    let three_by_four = "a 0 0 90\na 0 1 76\na 0 2 75\na 0 3 80\na 1 0 35\na 1 1 85\na 1 2 55\n\
        a 1 3 65\na 2 0 125\na 2 1 95\na 2 2 90\na 2 3 105\n";
    let five_by_three = "a 0 0 7\na 0 1 4\na 0 2 9\na 1 0 3\na 1 1 8\na 1 2 2\na 2 0 6\na 2 1 1\n\
        a 2 2 5\na 3 0 9\na 3 1 9\na 3 2 1\na 4 0 2\na 4 1 7\na 4 2 8\n";
    let one_car = "a 0 1 161\na 1 1 1\na 2 1 157\na 3 0 37\na 3 2 5\n";
    let desk = Desk::new();
    for (name, header, edges, objective, matched) in [
        ("all pairs impossible", "2 2 0", "", 2_000_000, 0),
        (
            "one request unreachable",
            "3 3 2",
            "a 0 2 4\na 2 1 4\n",
            1_000_008,
            2,
        ),
        (
            "one usable driver",
            "2 2 2",
            "a 0 0 1\na 1 0 2\n",
            1_000_001,
            1,
        ),
        ("many requests, one driver", "4 3 5", one_car, 2_000_006, 2),
        (
            "three requests, four drivers",
            "3 4 12",
            three_by_four,
            201,
            3,
        ),
        (
            "five requests, three drivers",
            "5 3 15",
            five_by_three,
            2_000_004,
            3,
        ),
        ("no requests", "0 3 0", "", 0, 0),
        ("no drivers", "3 0 0", "", 3_000_000, 0),
        ("nothing", "0 0 0", "", 0, 0),
        (
            "a cost of zero is an edge",
            "2 2 3",
            "a 0 0 0\na 1 0 0\na 1 1 7\n",
            7,
            2,
        ),
        (
            "of two equal edges the cheaper",
            "1 1 2",
            "a 0 0 9\na 0 0 4\n",
            4,
            1,
        ),
    ] {
        let file = desk.file("instance.asn", instance(header, edges));
        for method in EXACT {
            let answer = solved(&file, &["--method", method]);
            assert_eq!(answer["objective"], json!(objective), "{name} by {method}");
            assert_eq!(answer["matched"], json!(matched), "{name} by {method}");
            assert_eq!(answer["dual_bound"], answer["objective"]);
            assert_eq!(
                (&answer["gap"], &answer["gap_abs"]),
                (&json!(0.0), &json!(0))
            );
            assert_eq!(answer["verified"], json!(true));
            let status = if answer["edges"] == json!(0) {
                "empty"
            } else {
                "optimal"
            };
            assert_eq!(answer["status"], json!(status), "{name} by {method}");
        }
    }
}

#[test]
fn an_instance_that_is_none_is_refused_with_file_and_line() {
    let desk = Desk::new();
    let big = "p asn 2 2 2\nc unmatched_cost 9223372036854775807\na 0 0 4611686018427387904\n\
        a 1 1 4611686018427387904\n";
    for (text, named) in [
        (big, "too large"),
        (
            "p asn 1 1 1\nc unmatched_cost 10\na 0 5 3\n",
            "i.asn:3: driver 5",
        ),
        (
            "p asn 1 1 1\nc unmatched_cost 10\na 7 0 3\n",
            "i.asn:3: request 7",
        ),
        ("p asn -1 2 0\n", "i.asn:1"),
        ("p asn 2 2 3\nc unmatched_cost 10\na 0 0 1\n", "declares 3"),
        ("p asn 1 1 1\nc unmatched_cost 10\na 0 0 nan\n", "i.asn:3"),
        ("p asn 1 1 1\nc unmatched_cost 10\na 0 0 1.5\n", "i.asn:3"),
        ("p asn 1 1 1\nc unmatched_cost 10\nhello\n", "i.asn:3"),
        ("p asn 1 1 0\np asn 1 1 0\nc unmatched_cost 10\n", "i.asn:2"),
        (
            "p asn 1 1 0\nc unmatched_cost 10\nc unmatched_cost 10\n",
            "i.asn:3",
        ),
        ("p asn 1 1 0\n", "unmatched_cost"),
        ("c unmatched_cost 10\np asn 1 1 0\n", "i.asn:1"),
        ("", "p asn"),
    ] {
        let file = desk.file("i.asn", text);
        for method in EXACT {
            solve(&file, &["--method", method]).refused(&["i.asn", named]);
        }
    }
    let binary: Vec<u8> = (0..3000_u32).map(|n| (n * n % 251) as u8).collect();
    let file = desk.file("i.asn", binary);
    solve(&file, &[]).refused(&["i.asn"]);
}

#[test]
fn a_path_that_cannot_be_read_is_refused_by_name() {
    let desk = Desk::new();
    let missing = desk.path("missing.asn");
    solve(missing.to_str().unwrap(), &[]).refused(&["missing.asn", "No such file"]);
    let directory = desk.path("folder");
    std::fs::create_dir(&directory).unwrap();
    solve(directory.to_str().unwrap(), &[]).refused(&["folder", "directory"]);
    let file = desk.file("ok.asn", instance("0 0 0", ""));
    for (flag, value) in [("--method", "magic"), ("--repeat", "0"), ("--threads", "0")] {
        solve(&file, &[flag, value]).refused(&[flag, value]);
    }
}

#[test]
fn the_answer_has_the_fields_of_the_contract() {
    let wanted: BTreeSet<&str> = [
        "method",
        "status",
        "requests",
        "drivers",
        "edges",
        "matched",
        "objective",
        "dual_bound",
        "gap",
        "gap_abs",
        "components",
        "largest_component",
        "solve_ms_min",
        "solve_ms_median",
        "build_ms",
        "verify_ms",
        "verified",
    ]
    .into();
    let of = |answer: &Value| -> BTreeSet<String> {
        answer.as_object().unwrap().keys().cloned().collect()
    };
    let desk = Desk::new();
    let file = desk.file("i.asn", instance("1 1 1", "a 0 0 5\n"));
    let keys = of(&solved(&file, &["--repeat", "3"]));
    assert_eq!(
        keys.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        wanted
    );

    let file = desk.file("w.json", window_text());
    let mut keys = of(&solved(&file, &[]));
    for named in [
        "assignments",
        "unmatched",
        "total_cost_s",
        "gain_vs_greedy_s",
        "gain_vs_greedy_edge_s",
    ] {
        assert!(keys.remove(named), "{named}");
    }
    assert_eq!(
        keys.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        wanted
    );
}

/// Two riders, 10 and 30 s from one car.
fn window_text() -> String {
    let riders = vec![request("r1", 100.0), request("r2", 300.0)];
    write_window(&window(riders, vec![driver("d", 0.0)]).snapshot()).unwrap()
}

#[test]
fn a_recorded_window_is_solved_with_names_and_reasons() {
    let desk = Desk::new();
    let file = desk.file("w.json", window_text());
    for method in EXACT {
        let answer = solved(&file, &["--method", method]);
        assert_eq!(answer["objective"], json!(10_000 + 900_000), "{method}");
        assert_eq!(answer["assignments"][0]["request_id"], json!("r1"));
        assert_eq!(answer["assignments"][0]["driver_id"], json!("d"));
        assert_eq!(
            answer["unmatched"],
            json!([{"request_id": "r2", "reason": "outbid"}])
        );
        assert_eq!(answer["total_cost_s"], json!(910.0));
    }
    let human = solve(&file, &[]).done().stdout;
    assert!(
        human.contains("r1 ← d") && human.contains("r2  unmatched: outbid"),
        "{human}"
    );
}

#[test]
fn a_body_without_places_is_solved_by_its_edges() {
    let desk = Desk::new();
    let body = json!({
        "requests": [{"id": "r1", "unmatched_cost_s": 50}, {"id": "r2"}, {"id": "r3"}],
        "drivers": [{"id": "d1"}, {"id": "d2"}],
        "edges": [
            {"request_id": "r1", "driver_id": "d1", "eta_s": 60},
            {"request_id": "r2", "driver_id": "d1", "eta_s": 20.5},
            {"request_id": "r2", "driver_id": "d2", "eta_s": 30},
        ],
    });
    let text = body.to_string();
    // what some editors put first is no part of the text
    for text in [
        text.clone(),
        format!("\u{feff}{text}"),
        format!("\n  {text}\n"),
    ] {
        let answer = solved(&desk.file("w.json", text), &[]);
        assert_eq!(answer["total_cost_s"], json!(50.0 + 20.5 + 900.0));
        let wanted = json!([
            {"request_id": "r1", "reason": "not_worth_it"},
            {"request_id": "r3", "reason": "no_driver_in_range"},
        ]);
        assert_eq!(answer["unmatched"], wanted);
    }
}

#[test]
fn a_window_that_is_none_is_refused_with_the_place() {
    let place = json!({"lat": 1, "lng": 2});
    let request = |request: Value| json!({"requests": [request], "drivers": []});
    let driver = |driver: Value| json!({"requests": [], "drivers": [driver]});
    let edge =
        |edge: Value| json!({"requests": [{"id": "r"}], "drivers": [{"id": "d"}], "edges": [edge]});
    let desk = Desk::new();
    for (window, named) in [
        (request(json!({"id": "r"})), "requests[0].pickup"),
        (request(json!({"id": "r", "pickup": [1, 2]})), "a place"),
        (
            request(json!({"id": "r", "pickup": {"lat": 91, "lng": 2}})),
            "lat 91",
        ),
        (
            request(json!({"id": "r", "pickup": {"lat": 1, "lng": 2, "alt": 3}})),
            "alt",
        ),
        (request(json!({"id": "a/b", "pickup": place})), "'/'"),
        (request(json!({"id": "", "pickup": place})), "1 to 128"),
        (request(json!({"pickup": place})), "id"),
        (
            request(json!({"id": "r", "pickup": place, "unmatched_cost_s": -1})),
            "requests[0].unmatched_cost_s",
        ),
        (
            request(json!({"id": "r", "pickup": place, "max_pickup_eta_s": 1e9})),
            "requests[0].max_pickup_eta_s",
        ),
        (driver(json!({"id": "d"})), "drivers[0]"),
        (driver(json!({"id": "d", "lat": 1})), "drivers[0].lng"),
        (driver(json!({"id": "d", "lng": 1})), "drivers[0].lat"),
        (
            driver(json!({"id": "d", "lat": 1, "lng": 200})),
            "drivers[0].lng",
        ),
        (
            driver(json!({"id": "d", "lat": 1, "lng": 2, "acceptance_rate": 1.5})),
            "drivers[0].acceptance_rate",
        ),
        (
            driver(json!({"id": "d", "lat": 1, "lng": 2, "status": "asleep"})),
            "asleep",
        ),
        (
            json!({"requests": [], "drivers": [{"id": "d", "lat": 1, "lng": 2}, {"id": "d", "lat": 1, "lng": 2}]}),
            "drivers[1].id",
        ),
        (
            edge(json!({"request_id": "x", "driver_id": "d", "eta_s": 1})),
            "edges[0].request_id",
        ),
        (
            edge(json!({"request_id": "r", "driver_id": "x", "eta_s": 1})),
            "edges[0].driver_id",
        ),
        (
            edge(json!({"request_id": "r", "driver_id": "d", "eta_s": -1})),
            "edges[0].eta_s",
        ),
        (edge(json!({"request_id": "r", "driver_id": "d"})), "eta_s"),
    ] {
        let file = desk.file("w.json", window.to_string());
        solve(&file, &[]).refused(&["w.json", named]);
    }
}

#[test]
fn a_window_with_a_wrong_field_is_refused_by_its_name() {
    let recorded = |more: Value| {
        let mut window =
            json!({"format": "kheya-window/1", "now_ms": 5, "requests": [], "drivers": []});
        window
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        window
    };
    let place = json!({"lat": 1, "lng": 2});
    let desk = Desk::new();
    for (window, named) in [
        (
            json!({"requests": [], "drivers": [], "colour": 1}),
            "colour",
        ),
        (json!({"requests": []}), "drivers"),
        (
            json!({"requests": [], "drivers": [], "method": "magic"}),
            "method",
        ),
        (
            json!({"requests": [], "drivers": [], "eta": {"model": "straight_line", "speed_kmh": 0, "detour": 1}}),
            "eta.speed_kmh",
        ),
        (
            json!({"requests": [], "drivers": [], "eta": {"model": "crow", "speed_kmh": 20, "detour": 1}}),
            "crow",
        ),
        (
            json!({"requests": [], "drivers": [],
                   "constraints": [{"name": "a", "max": 1}, {"name": "b", "max": 1, "standing": 1}]}),
            "constraints[1].standing",
        ),
        (
            recorded(json!({"format": "kheya-window/9"})),
            "kheya-window/9",
        ),
        (recorded(json!({"now_ms": null})), "now_ms"),
        (recorded(json!({"budget_ms": 4})), "budget_ms"),
        (recorded(json!({"config": {"window_ms": 1}})), "window_ms"),
        (recorded(json!({"config": {"nope": 1}})), "nope"),
        (
            recorded(json!({"requests": [{"id": "r", "pickup": place}]})),
            "requests[0].requested_at_ms",
        ),
    ] {
        let file = desk.file("w.json", window.to_string());
        solve(&file, &[]).refused(&["w.json", named]);
    }
}

#[test]
fn a_text_that_is_no_json_is_refused_with_its_line() {
    let desk = Desk::new();
    for (text, named) in [
        ("{\"requests\":[],", "line 1"),
        ("{\"requests\":[],\"drivers\":[]} and more", "line 1"),
        ("{}", "requests"),
        (
            "{\"requests\":[],\"drivers\":[{\"id\":\"d\",\"lat\":NaN,\"lng\":1}]}",
            "line 1",
        ),
    ] {
        solve(&desk.file("w.json", text), &[]).refused(&["w.json", named]);
    }
}

#[test]
fn a_window_too_large_for_the_method_asked_for_is_the_calls_fault() {
    let ids = |letter: &str| -> Vec<Value> {
        (0..2000)
            .map(|n| json!({"id": format!("{letter}{n}")}))
            .collect()
    };
    let edge =
        |n: u32| json!({"request_id": format!("r{n}"), "driver_id": format!("d{n}"), "eta_s": 5});
    let edges: Vec<Value> = (0..2000).map(edge).collect();
    let body = json!({"requests": ids("r"), "drivers": ids("d"), "edges": edges});
    let file = Desk::new();
    let file_path = file.file("w.json", body.to_string());
    solve(&file_path, &["--method", "hungarian"]).refused(&["w.json", "hungarian", "sparse"]);
    assert_eq!(solved(&file_path, &[])["matched"], json!(2000));
}

/// Writes a seeded city of requests and drivers.
fn city(desk: &Desk, requests: usize, drivers: usize, candidates: usize) -> String {
    let mut text = Vec::new();
    let graph = Geometric::new(requests, drivers, candidates).graph(11);
    asn::write(&graph, &mut text).unwrap();
    desk.file("city.asn", text)
}

#[test]
fn a_large_city_is_solved_at_once() {
    let desk = Desk::new();
    let file = city(&desk, 20_000, 40_000, 30);
    let answer = solved(&file, &[]);
    assert_eq!(
        (&answer["status"], &answer["verified"]),
        (&json!("optimal"), &json!(true))
    );
    assert!(
        answer["edges"].as_u64().unwrap() > 500_000,
        "the load is too light"
    );
    // well under a second on an idle machine and optimised
    let took_ms = answer["solve_ms_min"].as_f64().unwrap();
    assert!(took_ms < 10_000.0, "{took_ms} ms");
}

#[test]
fn a_budget_ends_a_hard_solve_with_a_valid_answer_and_a_true_bound() {
    let desk = Desk::new();
    let file = city(&desk, 20_000, 8000, 40);
    let cut = solved(&file, &["--budget-ms", "5"]);
    let status = cut["status"].as_str().unwrap();
    assert!(["feasible", "optimal"].contains(&status), "{status}");
    assert_eq!(cut["verified"], json!(true));
    // within 10 ms on an idle machine
    let took_ms = cut["solve_ms_min"].as_f64().unwrap();
    assert!(took_ms < 500.0, "{took_ms} ms");

    let whole = solved(&file, &[]);
    assert_eq!(whole["status"], json!("optimal"));
    let number = |answer: &Value, name: &str| answer[name].as_i64().unwrap();
    let least = number(&whole, "objective");
    assert!(number(&cut, "dual_bound") <= least && least <= number(&cut, "objective"));
    let gap_abs = number(&cut, "objective") - number(&cut, "dual_bound");
    assert_eq!(number(&cut, "gap_abs"), gap_abs);
    assert_eq!(status == "optimal", gap_abs == 0);
    let threads = solved(&file, &["--threads", "1"]);
    assert_eq!(number(&threads, "objective"), least);
}

#[test]
fn constraints_of_a_window_are_kept_and_told() {
    let edge = |request: &str, driver: &str, eta_s: i64| json!({"request_id": request, "driver_id": driver, "eta_s": eta_s});
    let body = json!({
        "requests": [{"id": "r1"}, {"id": "r2"}],
        "drivers": [{"id": "a"}, {"id": "b"}],
        "edges": [edge("r1", "a", 60), edge("r2", "b", 50)],
        "constraints": [{"name": "airport", "max": 1}, {"name": "van", "drivers": ["a"], "min": 2}],
    });
    let desk = Desk::new();
    let file = desk.file("w.json", body.to_string());
    for method in ["auto", "sparse", "hungarian", "lp"] {
        let answer = solved(&file, &["--method", method]);
        assert_eq!(
            answer["assignments"][0]["driver_id"],
            json!("a"),
            "{answer}"
        );
        assert_eq!(answer["method"], json!("lp"));
        assert_eq!(answer["proof"], json!("branch_and_bound"));
        assert_eq!(answer["constraints"][1]["shortfall"], json!(1));
        assert_eq!(answer["unmatched"][0]["reason"], json!("constraint"));
    }
    let human = solve(&file, &[]).done().stdout;
    assert!(
        human.contains("constraint airport: 1 of at most 1"),
        "{human}"
    );
    assert!(
        human.contains("constraint van: 1, at least 2 (1 short)"),
        "{human}"
    );

    let mut bad = body;
    bad["constraints"][0]["requests"] = json!(["x"]);
    let refused = solve(&desk.file("bad.json", bad.to_string()), &[]);
    refused.refused(&["constraints[0].requests[0]"]);
}
