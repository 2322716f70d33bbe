//! `kheya solve`: one instance, solved, verified and timed.

use std::{
    fmt::Write as _,
    path::PathBuf,
    time::{Duration, Instant},
};

use clap::Args;
use kheya_solver::{Budget, Graph, Method, Options, Proof, Solution};
use serde::Serialize;

use super::{
    Failure, Format,
    instance::{Instance, named},
    print,
};
use crate::{
    decision::{
        AheadFacts, Assignment, Batch, DecisionError, Phase, SolveFacts, SolveOptions, Unmatched,
        WindowSnapshot, decide_batch,
    },
    domain::CostMs,
    eta::StraightLine,
    http::model::constraints::ConstraintReport,
    replay::quantile,
};

/// Arguments of `kheya solve`.
#[derive(Args)]
pub(super) struct SolveArgs {
    /// INSTANCE.asn, or WINDOW.json: a recorded snapshot or the body of POST /v1/solve
    instance: PathBuf,
    /// auto, sparse, hungarian, lp or greedy-edge
    #[arg(long)]
    method: Option<Method>,
    /// Solve this many times and report the least and the median time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    repeat: u32,
    /// Threads of the solver; by default one a core
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Stop after this many milliseconds and answer with the best found
    #[arg(long)]
    budget_ms: Option<u64>,
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
}

#[derive(Serialize)]
struct SolveReport {
    method: &'static str,
    status: &'static str,
    requests: usize,
    drivers: usize,
    edges: usize,
    matched: usize,
    objective: i64,
    dual_bound: i64,
    gap: f64,
    gap_abs: i64,
    /// Where an optimum is proven by a search and not by prices alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<&'static str>,
    components: usize,
    largest_component: usize,
    solve_ms_min: f64,
    solve_ms_median: f64,
    build_ms: f64,
    verify_ms: f64,
    verified: bool,
    #[serde(flatten)]
    window: Option<WindowAnswer>,
}

/// Who got whom, where the instance has names.
#[derive(Serialize)]
struct WindowAnswer {
    assignments: Vec<Assignment>,
    unmatched: Vec<Unmatched>,
    total_cost_s: f64,
    /// Absent where the window looked ahead, which gives some of them up.
    #[serde(skip_serializing_if = "Option::is_none")]
    gain_vs_greedy_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gain_vs_greedy_edge_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    constraints: Option<Vec<ConstraintReport>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead: Option<AheadFacts>,
}

/// A repeated solve takes no longer than this in all, once it has run at least once.
const MOST_REPEAT_TIME: Duration = Duration::from_mins(10);

pub(super) fn solve(args: &SolveArgs) -> Result<(), Failure> {
    if let Some(threads) = args.threads {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.into())
            .build();
        return pool
            .map_err(|e| Failure::broken(&e))?
            .install(|| solve_file(args));
    }
    solve_file(args)
}

fn solve_file(args: &SolveArgs) -> Result<(), Failure> {
    let report = match Instance::read(&args.instance)? {
        Instance::Window(snapshot, asked) => solve_window(&snapshot, &asked, args)?,
        Instance::Graph(instance) => solve_graph(&instance, args)?,
    };
    match args.format {
        Format::Json => {
            print(&(serde_json::to_string_pretty(&report).map_err(|e| Failure::broken(&e))? + "\n"))
        }
        Format::Human => print(&human(&report)),
    }
}

fn budget(ms: Option<u64>) -> Option<Budget> {
    ms.map(|ms| Budget::wall(Duration::from_millis(ms)))
}

fn solve_graph(
    instance: &kheya_solver::asn::Instance,
    args: &SolveArgs,
) -> Result<SolveReport, Failure> {
    let started = Instant::now();
    let graph = instance
        .graph()
        .map_err(|e| Failure::Input(named(&args.instance, e)))?;
    let build = started.elapsed();
    let options = Options {
        method: args.method.unwrap_or(Method::Auto),
        budget: budget(args.budget_ms),
        ..Options::default()
    };
    let (mut solution, mut times) = (None, Vec::new());
    repeat(args.repeat, || {
        let started = Instant::now();
        let solved = kheya_solver::solve(&graph, &options).map_err(|e| Failure::input(&e))?;
        times.push(started.elapsed());
        solution = Some(solved);
        Ok(())
    })?;
    let solution = solution.ok_or_else(|| Failure::Broken("nothing was solved".into()))?;
    let started = Instant::now();
    solution.verify(&graph).map_err(|e| Failure::broken(&e))?;
    Ok(graph_report(
        &graph,
        &solution,
        times,
        build,
        started.elapsed(),
    ))
}

fn graph_report(
    graph: &Graph,
    solution: &Solution,
    times: Vec<Duration>,
    build: Duration,
    verify: Duration,
) -> SolveReport {
    let (solve_ms_min, solve_ms_median) = least_and_median(times);
    SolveReport {
        method: solution.method.name(),
        status: solution.status.name(),
        requests: graph.requests(),
        drivers: graph.drivers(),
        edges: graph.edges(),
        matched: solution.matched(),
        objective: solution.objective,
        dual_bound: solution.dual_bound,
        gap: solution.gap(),
        gap_abs: solution.gap_abs(),
        proof: None,
        components: solution.components,
        largest_component: solution.largest_component,
        solve_ms_min,
        solve_ms_median,
        build_ms: ms(build),
        verify_ms: ms(verify),
        verified: true,
        window: None,
    }
}

fn solve_window(
    snapshot: &WindowSnapshot,
    asked: &SolveOptions,
    args: &SolveArgs,
) -> Result<SolveReport, Failure> {
    let eta = StraightLine::of(snapshot.config());
    let options = Options {
        method: args.method.or(asked.method).unwrap_or(Method::Auto),
        budget: budget(args.budget_ms.or(asked.budget_ms)),
        ..Options::default()
    };
    let (mut batch, mut times) = (None, Vec::new());
    let (mut build, mut verify) = (Duration::ZERO, Duration::ZERO);
    repeat(args.repeat, || {
        let mut started = Instant::now();
        let mut solve = Duration::ZERO;
        (build, verify) = (Duration::ZERO, Duration::ZERO);
        let decided = decide_batch(snapshot, &eta, &options, |phase| {
            let took = started.elapsed();
            match phase {
                Phase::Search | Phase::Eta | Phase::Build => build += took,
                Phase::Solve => solve += took,
                Phase::Verify => verify += took,
            }
            started = Instant::now();
        });
        times.push(solve);
        batch = Some(decided.map_err(|error| match error {
            // the method asked for is not fit for this window
            DecisionError::Solve(error) => Failure::Input(named(&args.instance, error)),
            other => Failure::broken(&other),
        })?);
        Ok(())
    })?;
    let Some(Batch {
        decision, table, ..
    }) = batch
    else {
        return Err(Failure::Broken("nothing was solved".into()));
    };
    let facts = decision
        .solve
        .as_ref()
        .ok_or_else(|| Failure::Broken("nothing was solved".into()))?;
    let gain = |of: fn(&SolveFacts) -> CostMs| decision.gains().map(|f| of(f).as_seconds());
    let (solve_ms_min, solve_ms_median) = least_and_median(times);
    Ok(SolveReport {
        method: facts.method.name(),
        status: facts.status.name(),
        requests: snapshot.requests().len(),
        drivers: snapshot.drivers().len(),
        edges: table.edges(),
        matched: decision.assignments.len(),
        objective: decision.objective.get(),
        dual_bound: facts.dual_bound.get(),
        gap: facts.gap,
        gap_abs: facts.gap_abs.get(),
        proof: (facts.proof == Proof::BranchAndBound).then(|| facts.proof.name()),
        components: facts.components,
        largest_component: facts.largest_component,
        solve_ms_min,
        solve_ms_median,
        build_ms: ms(build),
        verify_ms: ms(verify),
        verified: true,
        window: Some(WindowAnswer {
            gain_vs_greedy_s: gain(|facts| facts.gain_vs_greedy),
            gain_vs_greedy_edge_s: gain(|facts| facts.gain_vs_greedy_edge),
            total_cost_s: decision.objective.as_seconds(),
            constraints: ConstraintReport::all(&decision.constraints),
            assignments: decision.assignments,
            unmatched: decision.unmatched,
            ahead: decision.ahead,
        }),
    })
}

fn repeat(times: u32, mut solve: impl FnMut() -> Result<(), Failure>) -> Result<(), Failure> {
    let started = Instant::now();
    for _ in 0..times {
        solve()?;
        if started.elapsed() > MOST_REPEAT_TIME {
            break;
        }
    }
    Ok(())
}

fn least_and_median(times: Vec<Duration>) -> (f64, f64) {
    let mut times: Vec<f64> = times.into_iter().map(ms).collect();
    times.sort_unstable_by(f64::total_cmp);
    let at = |q| quantile(&times, q).unwrap_or_default();
    (at(0.0), at(0.5))
}

fn ms(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

fn human(report: &SolveReport) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} requests × {} drivers, {} edges, {} components (largest: {} requests)",
        report.requests, report.drivers, report.edges, report.components, report.largest_component
    );
    let _ = writeln!(
        text,
        "{} by {}: objective {}, {} matched, {} unmatched",
        report.status,
        report.method,
        report.objective,
        report.matched,
        report.requests - report.matched
    );
    if report.gap_abs != 0 {
        let _ = writeln!(
            text,
            "lower bound {}, gap {} ({:.3} %)",
            report.dual_bound,
            report.gap_abs,
            100.0 * report.gap
        );
    }
    if report.proof.is_some() {
        let _ = writeln!(text, "proven by branch and bound");
    }
    let _ = writeln!(
        text,
        "build {:.3} ms, solve {:.3} ms (median {:.3}), verified in {:.3} ms",
        report.build_ms, report.solve_ms_min, report.solve_ms_median, report.verify_ms
    );
    let Some(window) = &report.window else {
        return text;
    };
    if let (Some(edge), Some(oldest)) = (window.gain_vs_greedy_edge_s, window.gain_vs_greedy_s) {
        let _ = writeln!(
            text,
            "gain: {edge:+.3} s on greedy-edge, {oldest:+.3} s on oldest-first greedy\n"
        );
    }
    if let Some(ahead) = &window.ahead {
        let _ = writeln!(
            text,
            "looked ahead: {} drivers soon free, {} expected requests, {} edges; {} planned\n",
            ahead.soon_free,
            ahead.phantoms,
            ahead.edges,
            ahead.plans.len()
        );
    }
    for constraint in window.constraints.iter().flatten() {
        let _ = writeln!(text, "{}", constraint_line(constraint));
    }
    for pair in &window.assignments {
        let _ = writeln!(
            text,
            "{} ← {}  eta {:.1} s  cost {:.3} s",
            pair.request_id, pair.driver_id, pair.eta_s, pair.cost_s
        );
    }
    for left in &window.unmatched {
        let reason = serde_json::to_value(left.reason).unwrap_or_default();
        let _ = writeln!(
            text,
            "{}  unmatched: {}",
            left.request_id,
            reason.as_str().unwrap_or("?")
        );
    }
    text
}

fn constraint_line(constraint: &ConstraintReport) -> String {
    let mut line = format!("constraint {}: {}", constraint.name, constraint.count);
    if let Some(max) = constraint.max {
        let _ = write!(line, " of at most {max}");
    }
    if let Some(min) = constraint.min {
        let _ = write!(line, ", at least {min}");
    }
    if let Some(shortfall) = constraint.shortfall {
        let _ = write!(line, " ({shortfall} short)");
    } else if constraint.multiplier_s != 0.0 {
        let _ = write!(line, ", adds {:+.3} s a pair", constraint.multiplier_s);
    }
    line
}
