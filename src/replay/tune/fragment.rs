//! The recommended settings as a piece of a configuration file that `kheya serve` takes.

use std::{fmt::Write as _, path::Path};

use serde_json::Map;

use super::report::TuneReport;
use crate::{
    config::RegionConfig,
    domain::{DurationMs, RegionId},
    replay::wrapped::wrapped,
};

/// The settings to put into the configuration of `region`, or of every region that has none of its
/// own: what was recommended, and of `config`, what the recommendation rests on, the settings
/// called `given`. Where learned demand is recommended, that of the file `demand_model`.
///
/// # Errors
/// Those of the TOML writer.
pub fn config_fragment(
    report: &TuneReport,
    config: &RegionConfig,
    given: &[String],
    region: Option<&RegionId>,
    demand_model: Option<&Path>,
) -> Result<String, toml::ser::Error> {
    let recommended = &report.recommended;
    let all = config.settings();
    let mut settings = Map::new();
    for name in given {
        if let Some(value) = all.get(name) {
            settings.insert(name.clone(), value.clone());
        }
    }
    if recommended.window_ms > 0 {
        let window = DurationMs::new(recommended.window_ms);
        settings.insert("window_ms".into(), window.get().into());
        // what must not exceed the window
        for (name, own) in [
            ("budget_ms", config.budget_ms),
            ("min_window_ms", config.min_window_ms),
        ] {
            if own > window {
                settings.insert(name.into(), window.get().into());
            }
        }
    }
    settings.insert(
        "max_pickup_eta_s".into(),
        recommended.max_pickup_eta_s.into(),
    );
    settings.insert("age_weight".into(), recommended.age_weight.into());
    let ahead = [
        (
            "plan_ahead_ms",
            recommended.plan_ahead_ms,
            config.plan_ahead_ms,
        ),
        (
            "demand_ahead_ms",
            recommended.demand_ahead_ms,
            config.demand_ahead_ms,
        ),
    ];
    // off is the default: both are written where looking ahead was tried, or is on without it
    let tried = report
        .sweep
        .iter()
        .any(|row| row.setting.plan_ahead_ms != 0 || row.setting.demand_ahead_ms != 0);
    if tried
        || ahead
            .iter()
            .any(|&(_, chosen, own)| chosen != 0 || own != DurationMs::ZERO)
    {
        for (name, chosen, _) in ahead {
            settings.insert(name.into(), chosen.into());
        }
    }

    let mut text = String::from("# From kheya tune, for kheya serve --config.\n");
    for line in wrapped(&recommended.reason, 0).lines() {
        let _ = writeln!(text, "# {line}");
    }
    if let [first, _, ..] = &report.by_fleet[..] {
        let _ = writeln!(
            text,
            "# This is for the first of the fleets tried, {} drivers.",
            first.drivers
        );
    }
    let table = region.map_or_else(
        || "region_defaults".to_owned(),
        |region| format!("regions.{region}"),
    );
    let _ = writeln!(text, "\n[{table}]");
    text.push_str(&toml::to_string(&settings)?);
    if let Some(file) = demand_model.filter(|_| recommended.learned_demand) {
        let file = toml::Value::from(file.display().to_string());
        let _ = match region {
            Some(region) => writeln!(text, "\n[demand_models]\n{region} = {file}"),
            None => writeln!(
                text,
                "\n# With the demand learned, which is told by region:\n# [demand_models]\n# REGION = {file}"
            ),
        };
    }
    Ok(text)
}
