//! `kheya replay`: recorded demand decided again.

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use clap::{Args, ValueEnum};
use rayon::prelude::*;
use serde_json::{Map, Value};

use super::{Failure, Format, check_out, duration, print, progress::Bar, verify};
use crate::{
    config::RegionConfig,
    domain::{DurationMs, RegionId},
    replay::{
        self, Kpis, Policy, ReplayReport, Run, Scenario,
        input::{
            Demand, DropoffRule, FleetDriver, ReadOptions, RecordedRun, read_demand, read_drivers,
        },
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
            "to", "sample", "map", "date_order", "zone_jitter", "dropoff", "report",
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

impl FleetArgs {
    /// Where the cars come from, in words.
    fn describe(&self, seed: u64) -> String {
        match (&self.drivers_file, self.drivers) {
            (Some(file), _) => format!("recorded in {}", file.display()),
            (None, Some(_)) => format!("sampled from the pickups with seed {seed}"),
            (None, None) => "as the service recorded them".into(),
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
    if args.verify {
        return verify::verify(&args.files, args.format);
    }
    let started = Instant::now();
    // what is wrong with the settings is said before the long reading
    region_config(args, &RegionConfig::default())?;
    if let Some(out) = &args.out {
        check_out(out)?;
    }
    if let Some(page) = &args.report {
        page::check_page(page).map_err(|e| Failure::input(&e))?;
    }
    let options = args.reading.options(args.seed)?;
    // the fleet file is small: what is wrong with it is said before the long reading
    let recorded_fleet = args
        .fleet
        .drivers_file
        .as_deref()
        .map(read_drivers)
        .transpose();
    let recorded_fleet = recorded_fleet.map_err(|e| Failure::input(&e))?;
    let record = read_record(args)?;
    let (demand, recorded_fleet, config) = match &record {
        Some(record) => (
            record.demand(&options).map_err(|e| Failure::input(&e))?,
            recorded_fleet.or_else(|| args.fleet.drivers.is_none().then(|| record.fleet())),
            region_config(args, record.config().unwrap_or(&RegionConfig::default()))?,
        ),
        None => (
            read(&args.files, &options)?,
            recorded_fleet,
            region_config(args, &RegionConfig::default())?,
        ),
    };
    drop(record);
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
    let runs = runs.map_err(|e| Failure::broken(&e))?;
    let kpis = runs.iter().map(|run| Kpis::of(&scenario, run)).collect();
    let report = ReplayReport::new(input, kpis, started.elapsed().as_secs_f64());
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

/// Writes the page of `--report`.
fn write_report(
    file: &Path,
    args: &ReplayArgs,
    scenario: &Scenario,
    runs: &[Run],
    report: &ReplayReport,
) -> Result<(), Failure> {
    let account = page::Account::new(
        std::env::args_os().skip(1),
        &args.reading.tz,
        args.fleet.describe(args.seed),
    );
    let collected = page::Collected::of(scenario, runs);
    let text = page::replay_page(&account, report, &collected, &scenario.config, scenario.seed);
    page::write_page(file, &text).map_err(|e| Failure::broken(&e))
}

/// Reads the files if they are records of the service; if not, the fleet and the region that only
/// a record has must be as other demand needs them.
fn read_record(args: &ReplayArgs) -> Result<Option<RecordedRun>, Failure> {
    let bar = Bar::new("reading", 1, 1);
    let record = RecordedRun::read(&args.files, args.region.as_ref(), &|done, total| {
        bar.total(total);
        bar.done(0, done);
    });
    bar.finish();
    let record = record.map_err(|e| Failure::input(&e))?;
    if record.is_none() {
        if args.region.is_some() {
            return Err(Failure::Input(
                "--region: only a record of the service has regions".into(),
            ));
        }
        if let Some(absent) = args.files.iter().find(|file| !file.exists()) {
            return Err(Failure::Input(format!(
                "{} cannot be read: there is no such file or directory",
                absent.display()
            )));
        }
        if args.fleet.drivers.is_none() && args.fleet.drivers_file.is_none() {
            return Err(Failure::Input(
                "--drivers N or --drivers-file CSV is needed: only a record of the service brings its own cars"
                    .into(),
            ));
        }
    }
    Ok(record)
}

fn read(files: &[PathBuf], options: &ReadOptions) -> Result<Demand, Failure> {
    let bar = Bar::new("reading", 1, 1);
    let demand = read_demand(files, options, &|done, total| {
        bar.total(total);
        bar.done(0, done);
    });
    bar.finish();
    demand.map_err(|e| Failure::input(&e))
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

/// `base` with `--window` and `--set`; a value outside its rails is an error here, since a replay is
/// asked for exactly what it says.
fn region_config(args: &ReplayArgs, base: &RegionConfig) -> Result<RegionConfig, Failure> {
    let mut patch = Map::new();
    let window = args.window.unwrap_or(base.window_ms);
    let window_ms = window.get();
    patch.insert("window_ms".into(), window_ms.into());
    // the budget does not matter to a replay, but has to fit into a short window
    let budget_ms = base.budget_ms.get().min(window_ms.max(1));
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
    let patched = base.patched(&patch).map_err(|errors| {
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
            "--window {window}ms: a window is 500ms to 30s long"
        ))),
        Some(clamp) => Err(Failure::Input(format!(
            "--set {}={}: outside its limits, the nearest is {}",
            clamp.path, clamp.asked, clamp.used
        ))),
    }
}

fn region_id(text: &str) -> Result<RegionId, String> {
    RegionId::new(text).map_err(|error| error.to_string())
}

fn name_value(flag: &str, text: &str) -> Result<(String, String), Failure> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.into(), value.into()))
        }
        _ => Err(Failure::Input(format!("{flag} {text}: write NAME=VALUE"))),
    }
}
