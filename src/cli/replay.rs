//! `kheya replay`: recorded demand decided again.

use std::{path::PathBuf, time::Instant};

use clap::{Args, ValueEnum};
use rayon::prelude::*;
use serde_json::{Map, Value};

use super::{Failure, Format, check_out, duration, print, progress::Bar};
use crate::{
    config::RegionConfig,
    domain::DurationMs,
    replay::{
        self, Kpis, Policy, ReplayReport, Scenario,
        input::{Demand, DropoffRule, FleetDriver, ReadOptions, read_demand, read_drivers},
    },
};

/// Arguments of `kheya replay`.
#[derive(Args)]
pub(super) struct ReplayArgs {
    /// Recorded demand: CSV or Parquet, plain, gzip or zstd
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    fleet: FleetArgs,
    /// Length of a window
    #[arg(long, default_value = "3s", value_parser = duration)]
    window: DurationMs,
    /// `all` runs the four rules, `both` batch and greedy
    #[arg(long, value_enum, default_value = "batch")]
    policy: PolicyChoice,
    /// Seed of every random draw
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Another setting of the region, such as `max_pickup_eta_s=600` (repeatable)
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    #[command(flatten)]
    reading: ReadingArgs,
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
    /// Write run.json, assignments.csv and windows.csv into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Which cars there are.
#[derive(Args)]
#[group(required = true, multiple = false)]
pub(super) struct FleetArgs {
    /// Sample this many drivers from the pickups
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    drivers: Option<u32>,
    /// A recorded fleet: CSV `driver_id,from_ms,lat,lng[,to_ms]`
    #[arg(long, value_name = "CSV")]
    drivers_file: Option<PathBuf>,
}

/// How the files are to be read.
#[derive(Args)]
pub(super) struct ReadingArgs {
    /// Zones (id, centroid, box), for records that name zones instead of coordinates
    #[arg(long, value_name = "CSV")]
    zones: Option<PathBuf>,
    /// Put a zone's points on a disc, or all on its centroid
    #[arg(long, value_enum, default_value = "disc")]
    zone_jitter: ZoneJitter,
    /// Time zone of wall-clock times
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    tz: String,
    /// First request time used (in `--tz`)
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// First request time no longer used (in `--tz`)
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// Use this share of the requests, drawn by id
    #[arg(long, value_name = "SHARE")]
    sample: Option<f64>,
    /// Take a field from a column, such as `pickup_lat=y1` (repeatable)
    #[arg(long = "map", value_name = "FIELD=COLUMN")]
    map: Vec<String>,
    /// Order of day, month and year: mdy, dmy or ymd
    #[arg(long, value_name = "ORDER")]
    date_order: Option<replay::input::DateOrder>,
    /// A row without a usable drop-off is skipped, or given one drawn from the others
    #[arg(long, value_enum, default_value = "require")]
    dropoff: Dropoff,
}

#[derive(Clone, Copy, ValueEnum)]
enum ZoneJitter {
    Disc,
    None,
}

#[derive(Clone, Copy, ValueEnum)]
enum Dropoff {
    Require,
    Sample,
}

#[derive(Clone, Copy, ValueEnum)]
enum PolicyChoice {
    Batch,
    Greedy,
    GreedyEdge,
    GreedyNow,
    Both,
    All,
}

impl PolicyChoice {
    fn policies(self) -> Vec<Policy> {
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

impl ReadingArgs {
    fn options(&self, seed: u64) -> Result<ReadOptions, Failure> {
        if let Some(share) = self.sample
            && !(share > 0.0 && share <= 1.0)
        {
            return Err(Failure::Input(format!(
                "--sample {share}: a share lies above 0 and at most at 1"
            )));
        }
        Ok(ReadOptions {
            map: self
                .map
                .iter()
                .map(|pair| name_value("--map", pair))
                .collect::<Result<_, _>>()?,
            zones: self.zones.clone(),
            zone_jitter: matches!(self.zone_jitter, ZoneJitter::Disc),
            tz: Some(self.tz.clone()),
            from: self.from.clone(),
            to: self.to.clone(),
            date_order: self.date_order,
            dropoff: match self.dropoff {
                Dropoff::Require => DropoffRule::Require,
                Dropoff::Sample => DropoffRule::Sample,
            },
            sample: self.sample,
            seed,
        })
    }
}

pub(super) fn replay(args: &ReplayArgs) -> Result<(), Failure> {
    let started = Instant::now();
    let config = region_config(args)?;
    if let Some(out) = &args.out {
        check_out(out)?;
    }
    let options = args.reading.options(args.seed)?;
    // the fleet file is small: what is wrong with it is said before the long reading
    let recorded_fleet = args
        .fleet
        .drivers_file
        .as_deref()
        .map(read_drivers)
        .transpose();
    let recorded_fleet = recorded_fleet.map_err(Failure::input)?;
    let demand = read(&args.files, &options)?;
    let scenario = scenario(config, args, &demand, recorded_fleet);
    let Demand {
        report: input,
        trips,
    } = demand;
    drop(trips);

    let policies = args.policy.policies();
    let bar = Bar::new(
        "replaying",
        (scenario.trips.len() * policies.len()) as u64,
        policies.len(),
    );
    let runs: Result<Vec<_>, _> = policies
        .par_iter()
        .enumerate()
        .map(|(part, &policy)| replay::run(&scenario, policy, &|ended| bar.done(part, ended)))
        .collect();
    bar.finish();
    let runs = runs.map_err(Failure::broken)?;
    let kpis = runs.iter().map(|run| Kpis::of(&scenario, run)).collect();
    let report = ReplayReport::new(input, kpis, started.elapsed().as_secs_f64());
    if let Some(out) = &args.out {
        replay::write_outputs(out, &scenario, &runs, &report).map_err(Failure::broken)?;
    }
    match args.format {
        Format::Human => print(&replay::human(&report)),
        Format::Json => print(&(report.json().map_err(Failure::broken)? + "\n")),
    }
}

fn read(files: &[PathBuf], options: &ReadOptions) -> Result<Demand, Failure> {
    let bar = Bar::new("reading", 1, 1);
    let demand = read_demand(files, options, &|done, total| {
        bar.total(total);
        bar.done(0, done);
    });
    bar.finish();
    demand.map_err(Failure::input)
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
}

/// The defaults with `--window` and `--set`; a value outside its rails is an error here, since a
/// replay is asked for exactly what it says.
fn region_config(args: &ReplayArgs) -> Result<RegionConfig, Failure> {
    let mut patch = Map::new();
    let window_ms = args.window.get();
    patch.insert("window_ms".into(), window_ms.into());
    // the budget does not matter to a replay, but has to fit into a short window
    let budget_ms = RegionConfig::default()
        .budget_ms
        .get()
        .min(window_ms.max(1));
    patch.insert("budget_ms".into(), budget_ms.into());
    for setting in &args.settings {
        let (name, value) = name_value("--set", setting)?;
        if name == "window_ms" {
            return Err(Failure::Input("--set window_ms: use --window".into()));
        }
        let value: Value = serde_json::from_str(&value)
            .map_err(|_| Failure::Input(format!("--set {setting}: {value:?} is no JSON value")))?;
        patch.insert(name, value);
    }
    let patched = RegionConfig::default().patched(&patch).map_err(|errors| {
        Failure::Input(
            errors
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("; "),
        )
    })?;
    match patched.clamped.first() {
        None => Ok(patched.config),
        Some(clamp) if clamp.path == "window_ms" => Err(Failure::Input(format!(
            "--window {}ms: a window is 500ms to 30s long",
            args.window
        ))),
        Some(clamp) => Err(Failure::Input(format!(
            "--set {}={}: outside its limits, the nearest is {}",
            clamp.path, clamp.asked, clamp.used
        ))),
    }
}

fn name_value(flag: &str, text: &str) -> Result<(String, String), Failure> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.into(), value.into()))
        }
        _ => Err(Failure::Input(format!("{flag} {text}: write NAME=VALUE"))),
    }
}
