//! A decision against the contract written once more: candidates, optimum, gains, and an account of
//! everyone; the same whatever the input order, the threads, or a trip through a file.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod chance;
mod worlds;

use std::collections::{BTreeMap, BTreeSet};

use chance::fixed_cases;
use kheya::{
    candidates::CandidateTable,
    decision::{
        Batch, Reason, WindowDecision, WindowSnapshot, decide_batch, decide_edge_first,
        decide_oldest_first, read_window, write_window,
    },
    domain::{DriverId, RequestId},
    eta::StraightLine,
};
use kheya_solver::{Options, Status};
use proptest::prelude::*;
use worlds::naive;
use worlds::window_parts::{NOW, WindowParts, searched, with_edges};

fn decide(snapshot: &WindowSnapshot) -> Batch {
    let eta = StraightLine::of(snapshot.config());
    decide_batch(snapshot, &eta, &Options::default(), |_| ()).unwrap()
}

fn either() -> impl Strategy<Value = WindowParts> {
    prop_oneof![4 => searched(60, 80), 1 => with_edges(30, 20)]
}

fn pairs(decision: &WindowDecision) -> naive::Pairs {
    let pair = |a: &kheya::decision::Assignment| (a.request_id.clone(), a.driver_id.clone());
    decision.assignments.iter().map(pair).collect()
}

fn reasons(decision: &WindowDecision) -> BTreeMap<RequestId, Reason> {
    let unmatched = decision.unmatched.iter();
    unmatched
        .map(|u| (u.request_id.clone(), u.reason))
        .collect()
}

/// Every request once, every driver at most once, in the snapshot's order; the exclusions exact.
fn check_account(parts: &WindowParts, decision: &WindowDecision) {
    let assigned = decision.assignments.iter().map(|a| &a.request_id);
    let all: Vec<&RequestId> = assigned
        .chain(decision.unmatched.iter().map(|u| &u.request_id))
        .collect();
    let once: BTreeSet<&RequestId> = all.iter().copied().collect();
    let wanted: BTreeSet<&RequestId> = parts.requests.iter().map(|p| &p.request.id).collect();
    assert_eq!((all.len(), once), (wanted.len(), wanted));
    let used: BTreeSet<&DriverId> = decision.assignments.iter().map(|a| &a.driver_id).collect();
    assert_eq!(used.len(), decision.assignments.len(), "a driver twice");

    let mut excluded: Vec<_> = parts
        .drivers
        .iter()
        .filter_map(|d| naive::exclusion(d, &parts.config, NOW).map(|why| (d.id.clone(), why)))
        .collect();
    excluded.sort();
    let told: Vec<_> = decision
        .excluded
        .iter()
        .map(|e| (e.driver_id.clone(), e.reason))
        .collect();
    assert_eq!(told, excluded);
    assert_eq!(decision.drivers, parts.drivers.len() - excluded.len());
    let sum_s: f64 = decision.assignments.iter().map(|a| a.eta_s).sum();
    assert!((decision.total_eta_s() - sum_s).abs() < 1e-9);
}

/// Every chosen pair passes every filter, each looked at on its own.
fn check_filters(parts: &WindowParts, decision: &WindowDecision) {
    for pair in &decision.assignments {
        let pending = parts
            .requests
            .iter()
            .find(|p| p.request.id == pair.request_id);
        let request = &pending.unwrap().request;
        let driver = parts
            .drivers
            .iter()
            .find(|d| d.id == pair.driver_id)
            .unwrap();
        let config = &parts.config;
        assert_eq!(naive::exclusion(driver, config, NOW), None);
        assert!(naive::class_fits(request, driver));
        assert!(!naive::in_cooldown(request, driver, NOW));
        assert!(pair.eta_s <= request.max_pickup_eta_s.unwrap_or(config.max_pickup_eta_s));
        let cost_ms = naive::pair_cost_ms(config, driver, pair.eta_s, NOW);
        assert_eq!(naive::ms_of(pair.cost_s), cost_ms);
        assert!(cost_ms < naive::unmatched_ms(config, request, NOW));
        if parts.edges.is_none() {
            let place = |position: &Option<kheya::supply::Position>| position.unwrap().place();
            let km = naive::haversine_km(place(&request.pickup), place(&driver.position));
            assert!(km <= *config.search_radii_km.last().unwrap() + 1e-9);
            let eta_s = km * config.detour / config.speed_kmh * 3600.0;
            assert!((pair.eta_s - eta_s).abs() < 1e-6, "{} {eta_s}", pair.eta_s);
        }
    }
}

fn check_candidates(parts: &WindowParts, table: &CandidateTable, rows: &[naive::Row]) {
    let snapshot = parts.snapshot();
    assert_eq!(table.rows(), rows.len());
    assert_eq!(
        table.edges(),
        rows.iter().map(|r| r.edges.len()).sum::<usize>()
    );
    for (i, row) in rows.iter().enumerate() {
        assert_eq!(snapshot.requests()[i].request.id, row.request);
        assert_eq!(table.unmatched_cost(i).get(), row.unmatched_ms);
        assert_eq!(
            table.reason(i).map(Reason::from),
            row.reason,
            "{}",
            row.request
        );
        let id = |driver: u32| &snapshot.drivers()[driver as usize].id;
        let found: Vec<&DriverId> = table.row(i).iter().map(|c| id(c.driver)).collect();
        let wanted: Vec<&DriverId> = row.edges.iter().map(|e| &e.driver).collect();
        assert_eq!(found, wanted, "{}", row.request);
        for (candidate, edge) in table.row(i).iter().zip(&row.edges) {
            assert!((candidate.eta_s - edge.eta_s).abs() < 1e-6);
            assert_eq!(candidate.cost.get(), edge.cost_ms);
        }
    }
}

proptest! {
    #![proptest_config(fixed_cases(400))]

    #[test]
    fn candidates_are_those_of_a_search_over_every_pair(parts in either()) {
        check_candidates(&parts, &decide(&parts.snapshot()).table, &naive::rows(&parts));
    }

    #[test]
    fn everyone_is_accounted_for_once_under_every_rule(parts in either()) {
        let snapshot = parts.snapshot();
        let eta = StraightLine::of(snapshot.config());
        for decision in [
            decide(&snapshot).decision,
            decide_edge_first(&snapshot, &eta),
            decide_oldest_first(&snapshot, &eta),
        ] {
            check_account(&parts, &decision);
            check_filters(&parts, &decision);
        }
    }

    #[test]
    fn batch_costs_the_least_that_is_possible(parts in either()) {
        let rows = naive::rows(&parts);
        let Batch { decision, .. } = decide(&parts.snapshot());
        prop_assert_eq!(decision.objective.get(), naive::objective_ms(&rows, &pairs(&decision)));
        prop_assert_eq!(decision.objective.get(), naive::least_objective_ms(&rows));
        let facts = decision.solve.unwrap();
        prop_assert_eq!(facts.dual_bound, decision.objective);
        prop_assert_eq!((facts.gap, facts.gap_abs.get()), (0.0, 0));
        let nothing_worth_it = rows.iter().all(|row| row.worth().next().is_none());
        prop_assert_eq!(facts.status == Status::Empty, nothing_worth_it);
        prop_assert_ne!(facts.status, Status::Feasible);
    }

    #[test]
    fn gains_are_what_the_greedy_rules_cost_more_on_the_same_graph(parts in either()) {
        let rows = naive::rows(&parts);
        let Batch { decision, .. } = decide(&parts.snapshot());
        let (batch_ms, facts) = (decision.objective.get(), decision.solve.unwrap());
        let edge_first_ms = naive::objective_ms(&rows, &naive::least_cost_first(&rows));
        let oldest_first_ms = naive::objective_ms(&rows, &naive::oldest_first(&rows));
        prop_assert_eq!(facts.gain_vs_greedy_edge.get(), edge_first_ms - batch_ms);
        prop_assert_eq!(facts.gain_vs_greedy.get(), oldest_first_ms - batch_ms);
        prop_assert!(facts.gain_vs_greedy_edge.get() >= 0 && facts.gain_vs_greedy.get() >= 0);
    }

    #[test]
    fn a_request_without_a_driver_has_the_first_reason_that_applies(parts in either()) {
        let Batch { decision, .. } = decide(&parts.snapshot());
        let told = reasons(&decision);
        for row in naive::rows(&parts) {
            let assigned = pairs(&decision).contains_key(&row.request);
            let wanted = match row.reason {
                Some(reason) => Some(reason),
                None if row.worth().next().is_none() => Some(Reason::NotWorthIt),
                None if assigned => None,
                None => Some(Reason::Outbid),
            };
            prop_assert_eq!(told.get(&row.request).copied(), wanted);
        }
    }

    #[test]
    fn greedy_edge_takes_the_shortest_pickup_first(parts in either()) {
        let snapshot = parts.snapshot();
        let rows = naive::rows(&parts);
        let decision = decide_edge_first(&snapshot, &StraightLine::of(snapshot.config()));
        prop_assert_eq!(pairs(&decision), naive::least_eta_first(&rows));
        let batch_ms = decide(&snapshot).decision.objective;
        prop_assert!(batch_ms <= decision.objective);
    }

    #[test]
    fn oldest_first_searches_anew_after_each_pick(parts in searched(40, 40)) {
        let snapshot = parts.snapshot();
        let decision = decide_oldest_first(&snapshot, &StraightLine::of(snapshot.config()));
        let mut left: Vec<_> = parts.drivers.iter().collect();
        let (mut wanted, mut cost_ms) = (naive::Pairs::new(), 0);
        let admitted = snapshot.config().max_snapshot_requests as usize;
        for (turn, pending) in snapshot.requests().iter().enumerate() {
            let found = if turn < admitted {
                naive::found_edges(&parts.config, pending, &left, NOW)
            } else {
                Err(Reason::Deferred)
            };
            let row = naive::row_of(&parts.config, &pending.request, found, NOW);
            if let Some(best) = row.worth().min_by_key(|e| (e.cost_ms, &e.driver)) {
                left.retain(|d| d.id != best.driver);
                wanted.insert(row.request.clone(), best.driver.clone());
                cost_ms += best.cost_ms;
            } else {
                cost_ms += row.unmatched_ms;
            }
        }
        prop_assert_eq!(pairs(&decision), wanted);
        prop_assert_eq!(decision.objective.get(), cost_ms);
    }

    /// Where the search of each pick cannot see more than the window's graph has.
    #[test]
    fn batch_costs_no_more_than_oldest_first(mut parts in searched(40, 40)) {
        parts.set(&serde_json::json!({"search_radii_km": [4], "max_candidates": 1000}));
        let snapshot = parts.snapshot();
        let oldest_first = decide_oldest_first(&snapshot, &StraightLine::of(snapshot.config()));
        let Batch { decision, .. } = decide(&snapshot);
        prop_assert!(decision.objective <= oldest_first.objective);
        prop_assert_eq!(
            decision.solve.unwrap().gain_vs_greedy.get(),
            oldest_first.objective.get() - decision.objective.get()
        );
    }

    #[test]
    fn the_order_of_the_input_never_matters(parts in either(), seed in any::<u64>()) {
        let (snapshot, shuffled) = (parts.snapshot(), parts.shuffled(seed).snapshot());
        prop_assert_eq!(&snapshot, &shuffled);
        let eta = StraightLine::of(snapshot.config());
        prop_assert_eq!(decide(&snapshot).decision, decide(&shuffled).decision);
        prop_assert_eq!(
            decide_oldest_first(&snapshot, &eta),
            decide_oldest_first(&shuffled, &eta)
        );
        prop_assert_eq!(decide_edge_first(&snapshot, &eta), decide_edge_first(&shuffled, &eta));
        prop_assert_eq!(write_window(&snapshot).unwrap(), write_window(&shuffled).unwrap());
    }

    #[test]
    fn a_window_file_gives_back_its_snapshot_to_the_byte(parts in either()) {
        let snapshot = parts.snapshot();
        let text = write_window(&snapshot).unwrap();
        let (read, _) = read_window(text.as_bytes()).unwrap();
        prop_assert_eq!(&write_window(&read).unwrap(), &text);
        prop_assert_eq!(decide(&read).decision, decide(&snapshot).decision);
        prop_assert_eq!(read, snapshot);
    }
}

proptest! {
    #![proptest_config(fixed_cases(24))]

    /// Large enough that both the search and the solve are split among the threads.
    #[test]
    fn the_number_of_threads_never_matters(parts in searched(400, 500)) {
        let snapshot = parts.snapshot();
        let decisions = [1, 2, 4].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            pool.unwrap().install(|| decide(&snapshot).decision)
        });
        prop_assert_eq!(&decisions[0], &decisions[1]);
        prop_assert_eq!(&decisions[0], &decisions[2]);
    }
}

#[test]
fn the_windows_drawn_show_every_reason_and_every_radius() {
    use proptest::{strategy::ValueTree, test_runner::TestRunner};
    let mut runner = TestRunner::new(fixed_cases(1));
    let (mut told, mut excluded, mut matched, mut gained) =
        (BTreeSet::new(), BTreeSet::new(), 0, 0);
    for _ in 0..200 {
        let parts = either().new_tree(&mut runner).unwrap().current();
        let Batch { decision, .. } = decide(&parts.snapshot());
        told.extend(decision.unmatched.iter().map(|u| u.reason));
        excluded.extend(decision.excluded.iter().map(|e| e.reason));
        matched += decision.assignments.len();
        gained += u32::from(decision.solve.unwrap().gain_vs_greedy_edge.get() > 0);
    }
    // all but those that need another ETA model, a budget or a lost claim
    assert_eq!(told.len(), 7, "{told:?}");
    assert_eq!(excluded.len(), 5, "{excluded:?}");
    assert!(matched > 1000 && gained > 30, "{matched} {gained}");
}
