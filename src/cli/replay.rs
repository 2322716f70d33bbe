//! `kheya replay`: recorded demand decided again.

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use clap::{Args, ValueEnum};
use rayon::prelude::*;

use super::{
    Failure, Format, check_file, check_out,
    demand::{BehaviourArgs, Input, OwnFlag, ReadingArgs, read_input, region_id, set_config},
    demand_model::read_model,
    duration, print,
    progress::Bar,
    verify,
};
use crate::{
    config::RegionConfig,
    demand::{DemandCounts, WeekClock},
    domain::{DurationMs, RegionId},
    replay::{
        self, Bound, BoundOptions, Kpis, LearnReport, Policy, ReplayReport, Run, Scenario,
        TripEndError,
        input::{Demand, FleetDriver, read_drivers},
        page,
    },
};

/// Arguments of `kheya replay`.
#[derive(Args)]
pub(super) struct ReplayArgs {
    /// Recorded demand: CSV or Parquet, plain, gzip or zstd; or directories of `serve --record`
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Decide the windows of these records again, and compare bit for bit
    #[arg(
        long,
        conflicts_with_all = [
            "fleet", "region", "window", "policy", "seed", "settings", "out", "zones", "tz", "from",
            "to", "sample", "map", "date_order", "zone_jitter", "dropoff", "patience", "acceptance",
            "report", "plan_ahead", "demand_ahead", "trip_end_error", "bound", "demand_model", "learn",
        ]
    )]
    verify: bool,
    #[command(flatten)]
    fleet: FleetArgs,
    /// The region to replay, for a record of several
    #[arg(long, value_name = "ID", value_parser = region_id)]
    region: Option<RegionId>,
    /// Length of a window [default: 3s; for a record, that of its last window]
    #[arg(long, value_parser = duration)]
    window: Option<DurationMs>,
    /// Look ahead to drivers who will be free within this time (batch only) [default: the region's]
    #[arg(long, value_parser = duration)]
    plan_ahead: Option<DurationMs>,
    /// Let the pickups of so long ago stand for the next ones (batch only) [default: the region's]
    #[arg(long, value_parser = duration)]
    demand_ahead: Option<DurationMs>,
    /// With `--demand-ahead`: expect the riders that this file of `--learn` says, in place of those
    /// asked for lately (batch only)
    #[arg(long, value_name = "FILE")]
    demand_model: Option<PathBuf>,
    /// Learn from this demand how many riders ask, where and when in the week: writes demand.json
    /// into this directory, for `--demand-model` and `kheya serve`. Replays only where a fleet is
    /// named too
    #[arg(long, value_name = "DIR", conflicts_with = "demand_model")]
    learn: Option<PathBuf>,
    /// How badly the end of a trip is known that is looked ahead to: standard deviation of the
    /// logarithm of its remaining time
    #[arg(long, value_name = "SIGMA", default_value = "0.3")]
    trip_end_error: TripEndError,
    /// `all` runs the four rules, `both` batch and greedy
    #[arg(long, value_enum, default_value = "batch")]
    policy: PolicyChoice,
    /// Say how much is left: a rider cost that no rule can be below, knowing everything beforehand.
    /// Relaxed: each request to a car where it starts, or to the drop-off of another served trip at
    /// the earliest instant it could be free, each at most once; all trips together take no more car
    /// time than there is, at a price by the clock; a car that picks up late is not free later, and
    /// nothing waits for a window
    #[arg(long)]
    bound: bool,
    /// Seed of every random draw
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Another setting of the region, such as `max_pickup_eta_s=600` (repeatable)
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    #[command(flatten)]
    behaviour: BehaviourArgs,
    #[command(flatten)]
    reading: ReadingArgs,
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
    /// Write run.json, assignments.csv and windows.csv into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write a page with charts of what was found: one HTML file that needs nothing else
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

/// Which cars there are. A record brings its own; other demand does not.
#[derive(Args)]
#[group(id = "fleet", multiple = false)]
pub(super) struct FleetArgs {
    /// Sample this many drivers from the pickups
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    drivers: Option<u32>,
    /// A recorded fleet: CSV `driver_id,from_ms,lat,lng[,to_ms]`
    #[arg(long, value_name = "CSV")]
    drivers_file: Option<PathBuf>,
}

/// Which rules to run.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum PolicyChoice {
    Batch,
    Greedy,
    GreedyEdge,
    GreedyNow,
    Both,
    All,
}

impl PolicyChoice {
    /// The rules it names.
    pub(super) fn policies(self) -> Vec<Policy> {
        match self {
            Self::Batch => vec![Policy::Batch],
            Self::Greedy => vec![Policy::Greedy],
            Self::GreedyEdge => vec![Policy::GreedyEdge],
            Self::GreedyNow => vec![Policy::GreedyNow],
            Self::Both => vec![Policy::Batch, Policy::Greedy],
            Self::All => Policy::ALL.to_vec(),
        }
    }
}

/// Replays a scenario under each policy, side by side, with a bar that says what for.
pub(super) fn run_each(
    what: &'static str,
    scenario: &Scenario,
    policies: &[Policy],
) -> Result<Vec<Run>, Failure> {
    let work = (scenario.trips.len() * policies.len()) as u64;
    let bar = Bar::new(what, work, policies.len());
    let runs: Result<Vec<_>, _> = policies
        .par_iter()
        .enumerate()
        .map(|(part, &policy)| replay::run(scenario, policy, &|ended| bar.done(part, ended)))
        .collect();
    bar.finish();
    runs.map_err(|e| Failure::broken(&e))
}

pub(super) fn replay(args: &ReplayArgs) -> Result<(), Failure> {
    if args.verify {
        return verify::verify(&args.files, args.format);
    }
    let started = Instant::now();
    // what is wrong with the settings is said before the long reading
    region_config(args, &RegionConfig::default())?;
    if let Some(out) = &args.out {
        check_out("--out", out)?;
    }
    if let Some(page) = &args.report {
        check_file("--report", page)?;
    }
    if let Some(directory) = &args.learn {
        check_out("--learn", directory)?;
    }
    let model = args.demand_model.as_deref();
    let model = model.map(|file| read_model("--demand-model", file));
    let model = model.transpose()?;
    let options = args.reading.options(args.seed)?;
    // the fleet file is small: what is wrong with it is said before the long reading
    let recorded_fleet = args
        .fleet
        .drivers_file
        .as_deref()
        .map(read_drivers)
        .transpose();
    let recorded_fleet = recorded_fleet.map_err(|e| Failure::input(&e))?;
    let fleet_given = args.fleet.drivers.is_some() || recorded_fleet.is_some();
    if args.learn.is_some() && !fleet_given {
        refuse_what_replays(args)?;
    }
    let region = args.region.as_ref();
    let Input {
        demand,
        fleet,
        config,
    } = read_input(
        &args.files,
        region,
        &options,
        fleet_given || args.learn.is_some(),
    )?;
    if region.is_some() && config.is_none() {
        return Err(Failure::Input(
            "--region: only a record of the service has regions".into(),
        ));
    }
    if let Some(directory) = &args.learn {
        let learned = learn(directory, args, &demand)?;
        if !fleet_given {
            return match args.format {
                Format::Human => print(&learned.human()),
                Format::Json => print(&(learned.json().map_err(|e| Failure::broken(&e))? + "\n")),
            };
        }
    }
    let config = region_config(args, &config.unwrap_or_default())?;
    let recorded_fleet =
        recorded_fleet.or_else(|| args.fleet.drivers.is_none().then_some(fleet)?);
    let scenario = scenario(config, args, &demand, recorded_fleet).with_demand_model(model);
    let Demand {
        report: input,
        trips,
    } = demand;
    drop(trips);

    let policies = args.policy.policies();
    let runs = run_each("replaying", &scenario, &policies)?;
    let kpis = runs.iter().map(|run| Kpis::of(&scenario, run)).collect();
    let bound = args.bound.then(|| bound_of(&scenario)).transpose()?;
    let wall_s = started.elapsed().as_secs_f64();
    let report = ReplayReport::new(input, kpis, wall_s).with_bound(bound);
    if let Some(out) = &args.out {
        replay::write_outputs(out, &scenario, &runs, &report).map_err(|e| Failure::broken(&e))?;
    }
    if let Some(page) = &args.report {
        write_report(page, args, &scenario, &runs, &report)?;
    }
    match args.format {
        Format::Human => print(&replay::human(&report)),
        Format::Json => print(&(report.json().map_err(|e| Failure::broken(&e))? + "\n")),
    }
}

/// What asks for a replay, where `--learn` stands without a fleet.
fn refuse_what_replays(args: &ReplayArgs) -> Result<(), Failure> {
    let asked = [
        ("--out", args.out.is_some()),
        ("--report", args.report.is_some()),
        ("--bound", args.bound),
    ];
    match asked.into_iter().find(|(_, asked)| *asked) {
        None => Ok(()),
        Some((flag, _)) => Err(Failure::Input(format!(
            "{flag}: --learn replays only where a fleet is named, by --drivers N or --drivers-file CSV"
        ))),
    }
}

/// Writes what the demand teaches.
fn learn(directory: &Path, args: &ReplayArgs, demand: &Demand) -> Result<LearnReport, Failure> {
    let tz = &args.reading.tz;
    let clock = WeekClock::of(tz)
        .ok_or_else(|| Failure::Input(format!("--tz {tz}: there is no such time zone")))?;
    let trips = demand.trips.iter();
    let requests = trips.map(|trip| (trip.requested_at, trip.pickup));
    let counts = DemandCounts::of(clock, demand.report.span(), requests);
    let file = replay::write_demand_model(directory, &counts).map_err(|e| Failure::broken(&e))?;
    Ok(LearnReport::new(demand.report.clone(), &counts, file))
}

/// What no rule can be better than, with a bar.
fn bound_of(scenario: &Scenario) -> Result<Bound, Failure> {
    let bar = Bar::new("bounding", 1, 1);
    let bound = replay::rider_cost_bound(scenario, &BoundOptions::default(), &|round, rounds| {
        bar.total(rounds as u64);
        bar.done(0, round as u64);
    });
    bar.finish();
    bound.map_err(|e| Failure::broken(&e))
}

/// Writes the page of `--report`.
fn write_report(
    file: &Path,
    args: &ReplayArgs,
    scenario: &Scenario,
    runs: &[Run],
    report: &ReplayReport,
) -> Result<(), Failure> {
    let fleet = match (&args.fleet.drivers_file, args.fleet.drivers) {
        (Some(file), _) => format!("recorded in {}", file.display()),
        (None, Some(_)) => format!("sampled from the pickups with seed {}", args.seed),
        (None, None) => "as the service recorded them".into(),
    };
    let account = page::Account::new(std::env::args_os().skip(1), &args.reading.tz, fleet);
    let collected = page::Collected::of(scenario, runs);
    let text = page::replay_page(&account, report, &collected, scenario);
    page::write_page(file, &text).map_err(|e| Failure::broken(&e))
}

fn scenario(
    config: RegionConfig,
    args: &ReplayArgs,
    demand: &Demand,
    recorded_fleet: Option<Vec<FleetDriver>>,
) -> Scenario {
    let asked_from = args.reading.from.is_some().then_some(demand.report.from_ms);
    let t0 = asked_from
        .or_else(|| demand.trips.first().map(|trip| trip.requested_at))
        .unwrap_or_default();
    let fleet = recorded_fleet.unwrap_or_else(|| {
        replay::sample_fleet(demand, args.fleet.drivers.unwrap_or(0), args.seed, t0)
    });
    Scenario::new(config, args.seed, t0, demand, &fleet)
        .with_behaviour(args.behaviour.behaviour())
        .with_trip_end_error(args.trip_end_error)
}

/// `base` with `--window` and `--set`.
fn region_config(args: &ReplayArgs, base: &RegionConfig) -> Result<RegionConfig, Failure> {
    let window = args.window.unwrap_or(base.window_ms);
    let fixed = [("window_ms", "--window")];
    let flags = [
        OwnFlag {
            name: "plan_ahead_ms",
            flag: "--plan-ahead",
            value: args.plan_ahead,
        },
        OwnFlag {
            name: "demand_ahead_ms",
            flag: "--demand-ahead",
            value: args.demand_ahead,
        },
    ];
    set_config(base, Some(window), &flags, &args.settings, &fixed)
}
