//! `kheya explain`: why a rider got this car and not a nearer one, for whoever is asked about it.

use std::{fmt::Write as _, path::PathBuf};

use clap::Args;
use kheya_solver::{Method, Options};

use super::{
    Failure, Format,
    instance::{Instance, named},
    print,
};
use crate::{
    config::RegionConfig,
    decision::{
        ExplainRequestError, ExplainedCandidate, ExplainedMove, Reason, RequestExplanation,
        SolveOptions, decide_alone, explain_request,
    },
    domain::CostMs,
    eta::StraightLine,
};

/// Arguments of `kheya explain`.
#[derive(Args)]
pub(super) struct ExplainArgs {
    /// WINDOW.json: a recorded snapshot or the body of POST /v1/solve
    window: PathBuf,
    /// The id of the request
    #[arg(long)]
    request: String,
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
}

pub(super) fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    let refused = |error: &dyn std::fmt::Display| Failure::Input(named(&args.window, error));
    let Instance::Window(snapshot, asked) = Instance::read(&args.window)? else {
        return Err(refused(
            &"an .asn instance names nobody: explain reads a WINDOW.json",
        ));
    };
    let eta = StraightLine::of(snapshot.config());
    let options = to_the_end(&asked);
    let batch = decide_alone(&snapshot, &eta, &options, |_| ()).map_err(|error| refused(&error))?;
    let told = explain_request(&snapshot, &batch, &args.request).map_err(|error| match error {
        ExplainRequestError::UnknownRequest { .. }
        | ExplainRequestError::Graph(_)
        | ExplainRequestError::Constrained => refused(&error),
        ExplainRequestError::Solution(_) => Failure::broken(&error),
    })?;
    match args.format {
        Format::Json => {
            print(&(serde_json::to_string_pretty(&told).map_err(|e| Failure::broken(&e))? + "\n"))
        }
        Format::Human => {
            let mut text = human(&told, snapshot.config(), &asked);
            if snapshot.looks_ahead() {
                text.push_str(
                    "\nThe window looked ahead; told is what it would have done by itself.\n",
                );
            }
            if !snapshot.constraints().is_empty() {
                text.push_str("\nWhether a swap would break a side constraint is not looked at.\n");
            }
            print(&text)
        }
    }
}

/// What a swap costs can be told from the optimum alone: a budget or a rule that is not exact,
/// which the file may ask for, is left out.
fn to_the_end(asked: &SolveOptions) -> Options<'static> {
    let method = asked.method.filter(|&method| method != Method::GreedyEdge);
    Options {
        method: method.unwrap_or(Method::Auto),
        ..Options::default()
    }
}

fn human(told: &RequestExplanation, config: &RegionConfig, asked: &SolveOptions) -> String {
    let mut text = String::new();
    let id = &told.request_id;
    if let (Some(driver), Some(eta_s), Some(cost_s)) = (&told.driver_id, told.eta_s, told.cost_s) {
        let away = away(eta_s, cost_s);
        let _ = writeln!(text, "Rider {id} got car {driver}, {away}.");
    } else {
        let why = told.reason.map_or_else(String::new, |r| words(r, config));
        let price = time(told.unmatched_cost_s);
        let _ = writeln!(
            text,
            "Rider {id} got no car: {why}. A rider without a car counts as {price}."
        );
    }
    let (total, nearer) = (told.candidates_total, told.candidates.len());
    let _ = match (total, nearer, told.driver_id.is_some()) {
        (0, ..) => Ok(()),
        (1, _, true) => writeln!(text, "No other car was in reach."),
        (_, 0, true) => writeln!(text, "Of the {total} cars in reach none is nearer."),
        (_, 1, true) => writeln!(text, "Of the {total} cars in reach one is nearer:"),
        (_, _, true) => writeln!(text, "Of the {total} cars in reach {nearer} are nearer:"),
        (1, ..) => writeln!(text, "One car was in reach:"),
        (_, _, false) => writeln!(text, "In reach were {total} cars:"),
    };
    for candidate in &told.candidates {
        text.push('\n');
        tell_candidate(&mut text, told, candidate);
    }
    if !told.excluded.is_empty() {
        let counts = told.excluded.iter();
        let counts: Vec<String> = counts
            .map(|(reason, count)| format!("{count} {}", reason.name().replace('_', " ")))
            .collect();
        let _ = writeln!(text, "\nCars that nobody could get: {}.", counts.join(", "));
    }
    if asked.budget_ms.is_some() || asked.method == Some(Method::GreedyEdge) {
        text.push_str(
            "\nThis is the best answer for the window: the file's own budget or greedy rule was not used.\n",
        );
    }
    text
}

/// One nearer car: how near, who has it, and what the swap would do to everybody.
fn tell_candidate(text: &mut String, told: &RequestExplanation, candidate: &ExplainedCandidate) {
    let ExplainedCandidate {
        driver_id, eta_s, ..
    } = candidate;
    let id = &told.request_id;
    let _ = write!(
        text,
        "Car {driver_id} is {}",
        away(*eta_s, candidate.cost_s)
    );
    if let Some(got_s) = told.eta_s {
        let _ = write!(text, ", {} nearer", time(got_s - eta_s));
    }
    match (&candidate.held_by, candidate.path.get(1)) {
        (Some(holder), Some(step)) => {
            let otherwise = otherwise(step);
            let _ = write!(
                text,
                "; it went to rider {holder}, who would otherwise {otherwise}"
            );
        }
        _ => text.push_str("; it stays free"),
    }
    let more_ms = CostMs::from_seconds(candidate.swap_cost_s).get();
    let _ = match more_ms {
        0 => writeln!(
            text,
            ". Giving it to {id} would be just as good for all riders together; of equally good answers one is taken by id."
        ),
        _ => writeln!(
            text,
            ". Giving it to {id} would cost all riders together {} more.",
            time(candidate.swap_cost_s)
        ),
    };
    if candidate.path.len() > 1 {
        for step in &candidate.path {
            let _ = writeln!(text, "    {}", tell_move(step));
        }
    }
    if let Some(idle) = &candidate.left_idle {
        let _ = writeln!(text, "    car {idle} would be free");
    }
}

/// What a rider would have in place of the car it got.
fn otherwise(step: &ExplainedMove) -> String {
    let (Some(from_s), Some(to_s)) = (step.from_eta_s, step.to_eta_s) else {
        return "get no car".into();
    };
    match to_s - from_s {
        more if more >= 0.0 => format!("wait {} more", time(more)),
        less => format!("wait {} less", time(-less)),
    }
}

fn tell_move(step: &ExplainedMove) -> String {
    let car = |driver: &Option<_>, eta_s: Option<f64>, cost_s: f64| match (driver, eta_s) {
        (Some(driver), Some(eta_s)) => format!("{driver} ({})", priced(eta_s, cost_s)),
        _ => format!("no car (counts as {})", time(cost_s)),
    };
    let from = car(&step.from_driver_id, step.from_eta_s, step.from_cost_s);
    let to = car(&step.to_driver_id, step.to_eta_s, step.to_cost_s);
    format!("{}: {from} → {to}", step.request_id)
}

fn away(eta_s: f64, cost_s: f64) -> String {
    if counts_otherwise(eta_s, cost_s) {
        format!("{} away (counts as {})", time(eta_s), time(cost_s))
    } else {
        format!("{} away", time(eta_s))
    }
}

fn priced(eta_s: f64, cost_s: f64) -> String {
    if counts_otherwise(eta_s, cost_s) {
        format!("{}, counts as {}", time(eta_s), time(cost_s))
    } else {
        time(eta_s)
    }
}

/// Whether the region's weights make a pair cost something else than its ETA.
fn counts_otherwise(eta_s: f64, cost_s: f64) -> bool {
    CostMs::from_seconds(eta_s) != CostMs::from_seconds(cost_s)
}

/// A time as one says it: `0.25 s`, `7.5 s`, `40 s`, `1 min 10 s`, rounded from 10 s on.
fn time(seconds: f64) -> String {
    let sign = if seconds < 0.0 { "−" } else { "" };
    let ms = CostMs::from_seconds(seconds.abs()).get();
    if ms < 10_000 {
        return format!("{sign}{} s", ms as f64 / 1000.0);
    }
    let whole = (ms + 500) / 1000;
    match (whole / 60, whole % 60) {
        (0, seconds) => format!("{sign}{seconds} s"),
        (minutes, 0) => format!("{sign}{minutes} min"),
        (minutes, seconds) => format!("{sign}{minutes} min {seconds} s"),
    }
}

/// Why a rider got no car.
fn words(reason: Reason, config: &RegionConfig) -> String {
    match reason {
        Reason::Deferred => format!(
            "the window takes the {} oldest requests, and this one's turn had not come",
            config.max_snapshot_requests
        ),
        Reason::VehicleClass => "no free car is of a class the rider accepts".into(),
        Reason::NoDriverInRange => "no free car is in reach".into(),
        Reason::Cooldown => {
            "every free car in reach declined the rider before, or was ruled out with the request"
                .into()
        }
        Reason::Unroutable => "no car in reach has a way to the rider".into(),
        Reason::OverMaxPickupEta => "every free car in reach takes longer than allowed".into(),
        Reason::NotWorthIt => {
            "every car in reach counts for at least as much as leaving the rider without one".into()
        }
        Reason::Constraint => {
            "a side constraint that is full counts its pair with a free car".into()
        }
        Reason::Planned => "it waits for a car that will soon be free".into(),
        Reason::Budget => "the time for deciding was over before the rider's turn".into(),
        Reason::Outbid => "the cars in reach are worth more to others".into(),
        Reason::ClaimLost => "its car was claimed by somebody else meanwhile".into(),
    }
}
