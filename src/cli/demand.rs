//! Recorded demand on the command line: how to read it, and the settings of its region.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value};

use super::{Failure, progress::Bar};
use crate::{
    config::RegionConfig,
    domain::{DurationMs, RegionId},
    replay::{
        Acceptance, Behaviour, Patience,
        input::{
            DateOrder, Demand, DropoffRule, FleetDriver, ReadOptions, RecordedRun, read_demand,
        },
    },
};

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
    pub(super) tz: String,
    /// First request time used (in `--tz`)
    #[arg(long, value_name = "TIME")]
    pub(super) from: Option<String>,
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
    date_order: Option<DateOrder>,
    /// A row without a usable drop-off is skipped, or given one drawn from the others
    #[arg(long, value_enum, default_value = "require")]
    dropoff: Dropoff,
}

/// Who may refuse.
#[derive(Args)]
pub(super) struct BehaviourArgs {
    /// Riders who give up: half of them after waiting so long for a match, and half of those shown
    /// such an ETA, as in `wait=5m,eta=15m,shape=1` (each part may be left out) [default: nobody]
    #[arg(long, value_name = "HALVES")]
    patience: Option<Patience>,
    /// Drivers who decline: share of offers they take, and the ETA that halves it, as in
    /// `base=0.9,eta=10m` [default: nobody]
    #[arg(long, value_name = "HALVES")]
    acceptance: Option<Acceptance>,
}

impl BehaviourArgs {
    /// Who may refuse.
    pub(super) const fn behaviour(&self) -> Behaviour {
        Behaviour {
            patience: self.patience,
            acceptance: self.acceptance,
        }
    }
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

impl ReadingArgs {
    /// How the reader is to go about it.
    pub(super) fn options(&self, seed: u64) -> Result<ReadOptions, Failure> {
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

/// What was read.
pub(super) struct Input {
    /// The demand.
    pub(super) demand: Demand,
    /// The cars of a record of the service.
    pub(super) fleet: Option<Vec<FleetDriver>>,
    /// The last configuration of a record of the service.
    pub(super) config: Option<RegionConfig>,
}

/// Reads records of the service, or other recorded demand, which needs a fleet to be given.
pub(super) fn read_input(
    files: &[PathBuf],
    region: Option<&RegionId>,
    options: &ReadOptions,
    fleet_given: bool,
) -> Result<Input, Failure> {
    let bar = Bar::new("reading", 1, 1);
    let record = RecordedRun::read(files, region, &|done, total| {
        bar.total(total);
        bar.done(0, done);
    });
    bar.finish();
    if let Some(record) = record.map_err(|e| Failure::input(&e))? {
        return Ok(Input {
            demand: record.demand(options).map_err(|e| Failure::input(&e))?,
            fleet: Some(record.fleet()),
            config: Some(record.config().cloned().unwrap_or_default()),
        });
    }
    if let Some(absent) = files.iter().find(|file| !file.exists()) {
        return Err(Failure::Input(format!(
            "{} cannot be read: there is no such file or directory",
            absent.display()
        )));
    }
    if !fleet_given {
        return Err(Failure::Input(
            "--drivers N or --drivers-file CSV is needed: only a record of the service brings its own cars"
                .into(),
        ));
    }
    let bar = Bar::new("reading", 1, 1);
    let demand = read_demand(files, options, &|done, total| {
        bar.total(total);
        bar.done(0, done);
    });
    bar.finish();
    Ok(Input {
        demand: demand.map_err(|e| Failure::input(&e))?,
        fleet: None,
        config: None,
    })
}

/// A duration of the region with a flag of its own.
pub(super) struct OwnFlag {
    /// The setting.
    pub(super) name: &'static str,
    /// The flag.
    pub(super) flag: &'static str,
    /// What was asked for.
    pub(super) value: Option<DurationMs>,
}

/// `base` with a window, durations that have flags, and `--set`; a value outside its rails is an
/// error here, since a replay is asked for exactly what it says. `fixed` are settings that have a
/// flag of their own.
pub(super) fn set_config(
    base: &RegionConfig,
    window: Option<DurationMs>,
    flags: &[OwnFlag],
    settings: &[String],
    fixed: &[(&str, &str)],
) -> Result<RegionConfig, Failure> {
    let window = window.unwrap_or(base.window_ms);
    let window_ms = window.get();
    // the budget does not matter to a replay, but has to fit into a short window
    let budget_ms = base.budget_ms.get().min(window_ms.max(1));
    let mut patch = Map::new();
    patch.insert("window_ms".into(), window_ms.into());
    patch.insert("budget_ms".into(), budget_ms.into());
    for own in flags {
        if let Some(value) = own.value {
            patch.insert(own.name.into(), value.get().into());
        }
    }
    for setting in settings {
        let (name, value) = name_value("--set", setting)?;
        let flagged = flags.iter().map(|own| (own.name, own.flag));
        let mut fixed = fixed.iter().copied().chain(flagged);
        if let Some((_, flag)) = fixed.find(|(own, _)| *own == name) {
            return Err(Failure::Input(format!("--set {name}: use {flag}")));
        }
        let value: Value = serde_json::from_str(&value)
            .map_err(|_| Failure::Input(format!("--set {setting}: {value:?} is no JSON value")))?;
        patch.insert(name, value);
    }
    let patched = base.patched(&patch).map_err(|errors| {
        let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Failure::Input(all.join("; "))
    })?;
    match patched.clamped.first() {
        None => Ok(patched.config),
        Some(clamp) if clamp.path == "window_ms" => Err(Failure::Input(format!(
            "--window {}: a window is 500ms to 30s long",
            window.in_units()
        ))),
        Some(clamp) => {
            let own = flags.iter().find(|own| own.name == clamp.path);
            let (asked, nearest) = own.map_or_else(
                || {
                    let asked = format!("--set {}={}", clamp.path, clamp.asked);
                    (asked, clamp.used.to_string())
                },
                |own| {
                    let asked = format!("{} {}", own.flag, in_units(&clamp.asked));
                    (asked, in_units(&clamp.used))
                },
            );
            Err(Failure::Input(format!(
                "{asked}: outside its limits, the nearest is {nearest}"
            )))
        }
    }
}

/// A setting in milliseconds as its flag takes it.
fn in_units(ms: &Value) -> String {
    ms.as_i64()
        .map_or_else(|| ms.to_string(), |ms| DurationMs::new(ms).in_units())
}

/// Reads the name of a region.
pub(super) fn region_id(text: &str) -> Result<RegionId, String> {
    RegionId::new(text).map_err(|error| error.to_string())
}

/// Reads `NAME=VALUE`.
pub(super) fn name_value(flag: &str, text: &str) -> Result<(String, String), Failure> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.into(), value.into()))
        }
        _ => Err(Failure::Input(format!("{flag} {text}: write NAME=VALUE"))),
    }
}
