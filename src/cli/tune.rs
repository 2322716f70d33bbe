//! `kheya tune`: which window, by the region's own demand.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use clap::Args;
use jiff::tz::TimeZone;

use super::{
    Failure, Format, check_file, check_out,
    demand::{BehaviourArgs, Input, ReadingArgs, read_input, region_id, set_config},
    demand_model::read_model,
    duration, print,
    progress::Bar,
    replay::{PolicyChoice, run_each},
};
use crate::{
    config::RegionConfig,
    demand::DemandModel,
    domain::{DurationMs, RegionId, UnixMs},
    replay::{
        self, Kpis, Policy, Scenario, TripEndError,
        input::{Demand, read_drivers},
        page,
        tune::{self, Axis, PlanError, Rules, Sweep, TuneFleet, TunePlan, TuneReport},
    },
};

/// Arguments of `kheya tune`.
#[derive(Args)]
pub(super) struct TuneArgs {
    /// Recorded demand: CSV or Parquet, plain, gzip or zstd; or directories of `serve --record`
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Lengths of a window to try
    #[arg(long, value_delimiter = ',', value_parser = duration, default_value = "1s,2s,3s,4s,5s")]
    windows: Vec<DurationMs>,
    /// Longest pickup ETAs to try, in seconds [default: the region's]
    #[arg(long, value_name = "SECONDS", value_delimiter = ',', value_parser = finite)]
    max_pickup_eta: Vec<f64>,
    /// Weights of a request's age to try [default: the region's]
    #[arg(long, value_name = "WEIGHT", value_delimiter = ',', value_parser = finite)]
    age_weight: Vec<f64>,
    /// How far ahead to plan drivers who will be free, each to try [default: the region's]
    #[arg(long, value_name = "TIME", value_delimiter = ',', value_parser = duration)]
    plan_ahead: Vec<DurationMs>,
    /// How long past pickups stand for the next ones, each to try [default: the region's]
    #[arg(long, value_name = "TIME", value_delimiter = ',', value_parser = duration)]
    demand_ahead: Vec<DurationMs>,
    /// Wherever demand is looked ahead to, try beside the pickups of late the riders that this file of
    /// `kheya replay --learn` says; learn from other days than these
    #[arg(long, value_name = "FILE")]
    demand_model: Option<PathBuf>,
    /// How badly the end of a trip is known that is looked ahead to: standard deviation of the
    /// logarithm of its remaining time
    #[arg(long, value_name = "SIGMA", default_value = "0.3")]
    trip_end_error: TripEndError,
    /// Fleets to try, each sampled from the pickups
    #[arg(
        long, value_name = "N", value_delimiter = ',', conflicts_with = "drivers_file",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    drivers: Vec<u32>,
    /// A recorded fleet: CSV `driver_id,from_ms,lat,lng[,to_ms]`
    #[arg(long, value_name = "CSV")]
    drivers_file: Option<PathBuf>,
    /// Seeds to run every setting with
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    seeds: u32,
    /// First seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The window that the others are compared with [default: the region's, else the first named]
    #[arg(long, value_name = "WINDOW", value_parser = duration)]
    reference: Option<DurationMs>,
    /// The rule to tune, or `all`: every rule at its own best [default: batch, with greedy-edge and
    /// greedy-now beside it at the reference window]
    #[arg(long, value_enum)]
    policy: Option<PolicyChoice>,
    /// The region to tune, for a record of several, and for `--config-out`
    #[arg(long, value_name = "ID", value_parser = region_id)]
    region: Option<RegionId>,
    /// Another setting of the region, such as `max_wait_ms=300000` (repeatable)
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    #[command(flatten)]
    behaviour: BehaviourArgs,
    #[command(flatten)]
    reading: ReadingArgs,
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
    /// Write tune.json and blocks.csv, the figures of every block of time, into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write the recommended settings into this file, for `kheya serve --config`
    #[arg(long, value_name = "FILE")]
    config_out: Option<PathBuf>,
    /// Write a page with charts of what was found: one HTML file that needs nothing else
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

/// Settings that are swept, and their flags.
const SWEPT: [(&str, &str); 5] = [
    ("window_ms", "--windows"),
    ("max_pickup_eta_s", "--max-pickup-eta"),
    ("age_weight", "--age-weight"),
    ("plan_ahead_ms", "--plan-ahead"),
    ("demand_ahead_ms", "--demand-ahead"),
];

pub(super) fn tune(args: &TuneArgs) -> Result<(), Failure> {
    let started = Instant::now();
    // what is wrong with the settings is said before the long reading
    let model = args.demand_model.as_deref();
    let model = model.map(|file| read_model("--demand-model", file));
    let model = model.transpose()?;
    let empty = plan(args, &RegionConfig::default(), Vec::new(), None)?;
    empty.check().map_err(|e| Failure::input(&e))?;
    if let Some(out) = &args.out {
        check_out("--out", out)?;
    }
    if let Some(file) = &args.config_out {
        check_file("--config-out", file)?;
    }
    if let Some(twice) = repeated(&args.drivers) {
        return Err(Failure::Input(format!(
            "--drivers: {twice} stands there twice"
        )));
    }
    if let Some(page) = &args.report {
        check_file("--report", page)?;
    }
    let options = args.reading.options(args.seed)?;
    let given = args.drivers_file.as_deref().map(read_drivers).transpose();
    let given = given.map_err(|e| Failure::input(&e))?;
    let fleet_given = given.is_some() || !args.drivers.is_empty();
    let Input {
        demand,
        fleet,
        config,
    } = read_input(&args.files, args.region.as_ref(), &options, fleet_given)?;
    let recorded = given.or(fleet);
    let fleets = if args.drivers.is_empty() {
        recorded.into_iter().map(TuneFleet::Recorded).collect()
    } else {
        args.drivers
            .iter()
            .copied()
            .map(TuneFleet::Sampled)
            .collect()
    };
    let plan = plan(args, &config.unwrap_or_default(), fleets, model)?;
    let asked_from = args.reading.from.is_some().then_some(demand.report.from_ms);
    let t0 = asked_from
        .or_else(|| demand.trips.first().map(|trip| trip.requested_at))
        .unwrap_or_default();
    let sweep = Sweep::new(&plan, &demand, t0).map_err(|e| Failure::input(&e))?;
    let runs = sweep.runs();
    let bar = Bar::new("tuning", (demand.trips.len() * runs) as u64, runs);
    let report = sweep.run(&|run, ended| bar.done(run, ended));
    bar.finish();
    let mut report = report.map_err(|e| Failure::broken(&e))?;
    report.wall_s = started.elapsed().as_secs_f64();
    if let Some(out) = &args.out {
        replay::write_tune_outputs(out, &report).map_err(|e| Failure::broken(&e))?;
    }
    if let Some(file) = &args.config_out {
        write_config(args, &plan, &report, file)?;
    }
    if let Some(page) = &args.report {
        write_report(args, &plan, &report, &demand, t0, page)?;
    }
    match args.format {
        Format::Human => print(&tune::human(&report)),
        Format::Json => print(&(report.json().map_err(|e| Failure::broken(&e))? + "\n")),
    }
}

fn finite(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "must be a number".to_owned())?;
    if number.is_finite() {
        Ok(number)
    } else {
        Err("must be a finite number".into())
    }
}

fn repeated(sizes: &[u32]) -> Option<u32> {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]);
    twice.map(|pair| pair[0])
}

/// Writes the page of `--report`, for which the recommended setting is replayed once more.
fn write_report(
    args: &TuneArgs,
    plan: &TunePlan,
    report: &TuneReport,
    demand: &Demand,
    t0: UnixMs,
    file: &Path,
) -> Result<(), Failure> {
    let fleet = match (&args.drivers_file, args.drivers.is_empty()) {
        (Some(file), _) => format!("recorded in {}", file.display()),
        (None, false) => "sampled from the pickups anew under each seed".into(),
        (None, true) => "as the service recorded them".into(),
    };
    let account = page::Account::new(std::env::args_os().skip(1), &args.reading.tz, fleet);
    let scenario = recommended_scenario(args, plan, report, demand, t0)?;
    let policies: Vec<Policy> = std::iter::once(plan.rules.swept)
        .chain(plan.rules.beside.iter().copied())
        .collect();
    let runs = run_each("drawing", &scenario, &policies)?;
    let kpis: Vec<Kpis> = runs.iter().map(|run| Kpis::of(&scenario, run)).collect();
    let once = page::Once {
        scenario: &scenario,
        kpis: &kpis,
        collected: &page::Collected::of(&scenario, &runs),
    };
    let text = page::tune_page(&account, report, &plan.config, Some(&once));
    page::write_page(file, &text).map_err(|e| Failure::broken(&e))
}

/// The recommended setting of the first fleet, under the first seed.
fn recommended_scenario(
    args: &TuneArgs,
    plan: &TunePlan,
    report: &TuneReport,
    demand: &Demand,
    t0: UnixMs,
) -> Result<Scenario, Failure> {
    let recommended = &report.recommended;
    let window = (recommended.window_ms > 0).then(|| DurationMs::new(recommended.window_ms));
    let settings = [
        format!("max_pickup_eta_s={}", recommended.max_pickup_eta_s),
        format!("age_weight={}", recommended.age_weight),
        format!("plan_ahead_ms={}", recommended.plan_ahead_ms),
        format!("demand_ahead_ms={}", recommended.demand_ahead_ms),
    ];
    let config = set_config(&plan.config, window, &[], &settings, &[])?;
    let drawn;
    let fleet = match plan.fleets.first() {
        Some(TuneFleet::Recorded(fleet)) => fleet,
        Some(TuneFleet::Sampled(size)) => {
            drawn = replay::sample_fleet(demand, *size, args.seed, t0);
            &drawn
        }
        None => &Vec::new(),
    };
    Ok(Scenario::new(config, args.seed, t0, demand, fleet)
        .with_behaviour(plan.behaviour)
        .with_trip_end_error(plan.trip_end_error)
        .with_demand_model(
            plan.demand_model
                .clone()
                .filter(|_| recommended.learned_demand),
        ))
}

/// Writes the recommended settings for `kheya serve`.
fn write_config(
    args: &TuneArgs,
    plan: &TunePlan,
    report: &TuneReport,
    file: &Path,
) -> Result<(), Failure> {
    let given: Vec<String> = args
        .settings
        .iter()
        .filter_map(|setting| setting.split_once('='))
        .map(|(name, _)| name.to_owned())
        .collect();
    // the node that reads it may stand elsewhere
    let model = args.demand_model.as_deref();
    let model = model.map(|file| std::path::absolute(file).unwrap_or_else(|_| file.to_owned()));
    let region = args.region.as_ref();
    tune::config_fragment(report, &plan.config, &given, region, model.as_deref())
        .map_err(|e| Failure::broken(&e))
        .and_then(|text| {
            fs::write(file, text)
                .map_err(|error| Failure::Broken(format!("{}: {error}", file.display())))
        })
}

/// The sweep that was asked for, in a region configured as `base`.
fn plan(
    args: &TuneArgs,
    base: &RegionConfig,
    fleets: Vec<TuneFleet>,
    demand_model: Option<Arc<DemandModel>>,
) -> Result<TunePlan, Failure> {
    let fixed: Vec<(&str, &str)> = SWEPT
        .into_iter()
        .filter(|(name, _)| match *name {
            "max_pickup_eta_s" => !args.max_pickup_eta.is_empty(),
            "age_weight" => !args.age_weight.is_empty(),
            "plan_ahead_ms" => !args.plan_ahead.is_empty(),
            "demand_ahead_ms" => !args.demand_ahead.is_empty(),
            _ => true,
        })
        .collect();
    let config = set_config(base, None, &[], &args.settings, &fixed)?;
    let refused = |error: PlanError| Failure::input(&error);
    let (cap_s, weight) = (config.max_pickup_eta_s, config.age_weight);
    let own_window = args.reference.unwrap_or(config.window_ms);
    let windows = Axis::new("--windows", args.windows.clone(), own_window).map_err(refused)?;
    if args.reference.is_some() && !args.windows.contains(&own_window) {
        return Err(Failure::Input(format!(
            "--reference {}: not one of --windows",
            own_window.in_units()
        )));
    }
    let caps = or_own(&args.max_pickup_eta, cap_s);
    let weights = or_own(&args.age_weight, weight);
    let (plan, demand) = (config.plan_ahead_ms, config.demand_ahead_ms);
    let (plans, demands) = (
        or_own(&args.plan_ahead, plan),
        or_own(&args.demand_ahead, demand),
    );
    let tz = TimeZone::get(&args.reading.tz).map_err(|_| {
        Failure::Input(format!(
            "--tz {}: there is no such time zone",
            args.reading.tz
        ))
    })?;
    Ok(TunePlan {
        windows,
        max_pickup_eta_s: Axis::new("--max-pickup-eta", caps, cap_s).map_err(refused)?,
        age_weight: Axis::new("--age-weight", weights, weight).map_err(refused)?,
        plan_ahead: Axis::new("--plan-ahead", plans, plan).map_err(refused)?,
        demand_ahead: Axis::new("--demand-ahead", demands, demand).map_err(refused)?,
        demand_model,
        trip_end_error: args.trip_end_error,
        config,
        fleets,
        seeds: (0..u64::from(args.seeds))
            .map(|n| args.seed.wrapping_add(n))
            .collect(),
        rules: rules(args.policy),
        behaviour: args.behaviour.behaviour(),
        tz,
    })
}

/// The values named, or that in force.
fn or_own<T: Copy>(values: &[T], own: T) -> Vec<T> {
    if values.is_empty() {
        vec![own]
    } else {
        values.to_vec()
    }
}

/// The first rule is tuned, the others stand beside it.
fn rules(choice: Option<PolicyChoice>) -> Rules {
    let Some(choice) = choice else {
        return Rules {
            swept: Policy::Batch,
            beside: vec![Policy::GreedyEdge, Policy::GreedyNow],
            all_windows: false,
        };
    };
    let mut policies = choice.policies().into_iter();
    Rules {
        swept: policies.next().unwrap_or(Policy::Batch),
        beside: policies.collect(),
        all_windows: true,
    }
}
