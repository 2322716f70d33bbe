//! What a sweep found, as plain data: the JSON of `kheya tune`, and what tables and pictures are
//! drawn from.
//!
//! Costs and waits are those of the scored requests alone, over all seeds. A difference is a
//! setting's rider cost less the reference's, request by request on the same demand: negative is
//! better than the reference.

use serde::Serialize;

use crate::{
    domain::UnixMs,
    replay::{Spread, input::InputReport, report::rounded_json},
};

/// The whole answer of `kheya tune`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TuneReport {
    /// What was read.
    pub input: InputReport,
    /// How it was measured.
    pub method: MethodReport,
    /// Every setting tried: fleets as they were asked for, batch first, then by window, cap and
    /// weight.
    pub sweep: Vec<SweepRow>,
    /// What to set: that of the first fleet, where several were asked for.
    pub recommended: Recommendation,
    /// What to set for each fleet.
    pub by_fleet: Vec<FleetRecommendation>,
    /// The swept rule by hour of day.
    pub by_hour: Vec<HourReport>,
    /// The swept rule beside the others, each at its own best setting; empty if it ran alone.
    pub rules: Vec<RuleReport>,
    /// What the figures leave out or rest on, in whole sentences.
    pub notes: Vec<String>,
    /// Seconds from the start of reading to the last figure.
    pub wall_s: f64,
    /// What each setting gave in each block of time under each seed: what the intervals are made
    /// from. Not in the JSON.
    #[serde(skip)]
    pub blocks: Vec<BlockRow>,
}

/// A setting in one block of request time, under one seed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BlockRow {
    /// The setting.
    #[serde(flatten)]
    pub setting: Setting,
    /// The seed.
    pub seed: u64,
    /// When the block begins.
    pub block_from_ms: UnixMs,
    /// Requests made in it.
    pub requests: u32,
    /// Those that got a driver.
    pub matched: u32,
    /// Those who gave up.
    pub gave_up: u32,
    /// Seconds of waiting, lost riders counted.
    pub rider_s: f64,
    /// Seconds of driving to pickups.
    pub pickup_s: f64,
}

/// How the sweep was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MethodReport {
    /// Seeds run, each with a fleet (where it is sampled), times and a window phase of its own.
    pub seeds: Vec<u64>,
    /// Replays run.
    pub runs: usize,
    /// Requests replayed in one run.
    pub requests: usize,
    /// First request time scored: the start and the warm-up.
    pub scored_from_ms: UnixMs,
    /// First request time no longer scored: the end less the cool-down.
    pub scored_to_ms: UnixMs,
    /// Length of a block of request time.
    pub block_ms: i64,
    /// Blocks compared.
    pub blocks: usize,
    /// What a lost rider costs in every setting: `max_wait_s` and the longest `max_pickup_eta_s` swept.
    pub lost_rider_s: f64,
    /// Share of the requests whose times were spread over a whole minute.
    pub spread_over_minute_share: f64,
    /// Confidence of the intervals, over all comparisons of one fleet and rule together.
    pub confidence: f64,
    /// How badly the ends of trips are known that were looked ahead to: standard deviation of the
    /// logarithm of the remaining time; absent where no setting looks ahead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trip_end_error: Option<f64>,
    /// Riders and drivers who may refuse, as they were asked for; absent where nobody refuses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<String>,
    /// How drivers answer an offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acceptance: Option<String>,
}

/// What a run is set to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Setting {
    /// The rule.
    pub policy: &'static str,
    /// Size of the fleet.
    pub drivers: usize,
    /// Length of its windows; 0 where it has none.
    pub window_ms: i64,
    /// Longest pickup ETA.
    pub max_pickup_eta_s: f64,
    /// Weight of a request's age.
    pub age_weight: f64,
    /// How far ahead drivers are planned who will be free; 0 is not at all.
    pub plan_ahead_ms: i64,
    /// How long past pickups, or learned demand, stand for the next; 0 is not at all.
    pub demand_ahead_ms: i64,
    /// Whether learned demand stands for the next riders rather than the pickups of late.
    pub learned_demand: bool,
}

/// What is said of a demand looked ahead to that was learned, after how far; nothing of one of late.
pub(in crate::replay) const fn source_in_words(learned: bool) -> &'static str {
    if learned { " learned" } else { "" }
}

/// What a comparison says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Costs riders less: the whole interval lies below 0.
    Better,
    /// Costs riders more: the whole interval lies above 0.
    Worse,
    /// The interval holds 0 and lies inside ± 1 % of the reference.
    Equivalent,
    /// The interval is too wide to say.
    Undecided,
    /// Fewer than 12 blocks to compare.
    NotEnoughData,
}

/// A setting's difference to the reference of its fleet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Comparison {
    /// Rider cost less the reference's, in seconds; absent without requests.
    pub diff_s: Option<f64>,
    /// Its 95 % interval; absent where there are too few blocks.
    pub interval_s: Option<[f64; 2]>,
    /// Seeds under which it costs riders less than the reference does.
    pub seeds_better: usize,
    /// What the interval says.
    pub verdict: Verdict,
}

/// One setting tried.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweepRow {
    /// The setting.
    #[serde(flatten)]
    pub setting: Setting,
    /// Whether the others of its fleet are compared with it.
    pub reference: bool,
    /// Requests scored, over all seeds.
    pub requests: u64,
    /// Those that got a driver.
    pub matched: u64,
    /// Those who gave up, where riders may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gave_up: Option<u64>,
    /// Offers that drivers declined, in the whole of every run, where they may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declined: Option<u64>,
    /// Share of the requests that got a driver.
    pub match_rate: Option<f64>,
    /// Mean wait, a lost rider counted as [`MethodReport::lost_rider_s`].
    pub rider_cost_s: Option<f64>,
    /// Difference of the rider cost to the reference's.
    #[serde(flatten)]
    pub comparison: Comparison,
    /// Request to arrival of matched requests; each figure is the mean over the seeds.
    pub wait_s: Spread,
    /// Request to assignment.
    pub assign_delay_s: Spread,
    /// Assignment to arrival.
    pub pickup_eta_s: Spread,
    /// Road kilometres driven to pickups, a run.
    pub empty_km: f64,
    /// Share of all kilometres that were driven to pickups.
    pub empty_km_share: Option<f64>,
}

/// What to set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recommendation {
    /// Length of a window; 0 for a rule without windows.
    pub window_ms: i64,
    /// Longest pickup ETA.
    pub max_pickup_eta_s: f64,
    /// Weight of a request's age.
    pub age_weight: f64,
    /// How far ahead drivers are planned who will be free.
    pub plan_ahead_ms: i64,
    /// How long past pickups, or learned demand, stand for the next.
    pub demand_ahead_ms: i64,
    /// Whether learned demand stands for the next riders rather than the pickups of late.
    pub learned_demand: bool,
    /// Whether it is anything else than the reference.
    pub change: bool,
    /// Why, in whole sentences.
    pub reason: String,
}

/// What to set for one fleet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetRecommendation {
    /// Size of the fleet.
    pub drivers: usize,
    /// What to set.
    pub recommended: Recommendation,
}

/// The swept rule in one hour of the day, with one fleet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HourReport {
    /// Hour of the day, 0 to 23, in the zone of the input.
    pub hour: u8,
    /// Size of the fleet.
    pub drivers: usize,
    /// Requests scored, over all seeds.
    pub requests: u64,
    /// Blocks compared.
    pub blocks: usize,
    /// What to set in this hour.
    pub recommended: Recommendation,
    /// Every setting of the swept rule in this hour.
    pub sweep: Vec<HourRow>,
}

/// A setting in one hour of the day.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HourRow {
    /// Length of its windows.
    pub window_ms: i64,
    /// Longest pickup ETA.
    pub max_pickup_eta_s: f64,
    /// Weight of a request's age.
    pub age_weight: f64,
    /// How far ahead drivers are planned who will be free.
    pub plan_ahead_ms: i64,
    /// How long past pickups, or learned demand, stand for the next.
    pub demand_ahead_ms: i64,
    /// Whether learned demand stands for the next riders rather than the pickups of late.
    pub learned_demand: bool,
    /// Whether the others are compared with it.
    pub reference: bool,
    /// Share of the requests that got a driver.
    pub match_rate: Option<f64>,
    /// Mean wait, a lost rider counted.
    pub rider_cost_s: Option<f64>,
    /// Road kilometres driven to pickups, for each matched request.
    pub empty_km_per_trip: Option<f64>,
    /// Difference of the rider cost to the reference's.
    #[serde(flatten)]
    pub comparison: Comparison,
}

/// The swept rule against another, each at its own best setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RuleReport {
    /// The other rule at its best.
    pub rule: Setting,
    /// Its rider cost.
    pub rule_rider_cost_s: Option<f64>,
    /// The swept rule at its best, among the windows that both ran.
    pub ours: Setting,
    /// Its rider cost.
    pub ours_rider_cost_s: Option<f64>,
    /// Rider cost of ours less that of the rule: negative, and `better`, is better for ours.
    #[serde(flatten)]
    pub comparison: Comparison,
    /// What the rule is, and what to make of the comparison.
    pub note: String,
}

impl Verdict {
    /// Its name in JSON and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Equivalent => "equivalent",
            Self::Undecided => "undecided",
            Self::NotEnoughData => "not_enough_data",
        }
    }
}

impl TuneReport {
    /// As JSON, numbers rounded to four decimals.
    ///
    /// # Errors
    /// Those of the JSON writer.
    pub fn json(&self) -> serde_json::Result<String> {
        rounded_json(self)
    }

    /// [`Self::blocks`] as CSV.
    ///
    /// # Errors
    /// Those of the CSV writer.
    pub fn blocks_csv(&self) -> csv::Result<Vec<u8>> {
        let mut rows = csv::Writer::from_writer(Vec::new());
        rows.write_record([
            "policy",
            "drivers",
            "window_ms",
            "max_pickup_eta_s",
            "age_weight",
            "plan_ahead_ms",
            "demand_ahead_ms",
            "learned_demand",
            "seed",
            "block_from_ms",
            "requests",
            "matched",
            "gave_up",
            "rider_s",
            "pickup_s",
        ])?;
        for row in &self.blocks {
            let setting = &row.setting;
            rows.write_record([
                setting.policy.to_owned(),
                setting.drivers.to_string(),
                setting.window_ms.to_string(),
                setting.max_pickup_eta_s.to_string(),
                setting.age_weight.to_string(),
                setting.plan_ahead_ms.to_string(),
                setting.demand_ahead_ms.to_string(),
                setting.learned_demand.to_string(),
                row.seed.to_string(),
                row.block_from_ms.to_string(),
                row.requests.to_string(),
                row.matched.to_string(),
                row.gave_up.to_string(),
                format!("{:.3}", row.rider_s),
                format!("{:.3}", row.pickup_s),
            ])?;
        }
        rows.into_inner().map_err(|error| error.into_error().into())
    }
}
