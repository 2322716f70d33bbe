//! The sweep itself: every case under every seed, on all cores, and the report of it.

use rayon::prelude::*;

use super::{
    cases::{Case, PlanError, TuneFleet, TunePlan},
    compare::{ALPHA, Scores, Totals},
    grid::Grid,
    interval::DrawnFrom,
    recommend::{Choice, Words, recommend},
    report::{
        BlockRow, FleetRecommendation, HourReport, HourRow, MethodReport, Recommendation,
        RuleReport, SweepRow, TuneReport,
    },
    rules::compare_rules,
    score::{RunScore, mean_spread},
    spread::TimeSpread,
};
use crate::{
    decision::DecisionError,
    domain::{Draw, DurationMs, UnixMs},
    replay::{Policy, Scenario, input::Demand, run, sample_fleet},
};

/// A sweep, ready to run.
pub struct Sweep<'a> {
    plan: &'a TunePlan,
    demand: &'a Demand,
    t0: UnixMs,
    cases: Vec<Case>,
    grid: Grid,
    spread: TimeSpread,
}

impl<'a> Sweep<'a> {
    /// Prepares a sweep over demand that starts at `t0`.
    ///
    /// # Errors
    /// [`PlanError`] names the flag whose value does not fit.
    pub fn new(plan: &'a TunePlan, demand: &'a Demand, t0: UnixMs) -> Result<Self, PlanError> {
        let to = demand.report.to_ms;
        Ok(Self {
            plan,
            demand,
            t0,
            cases: plan.cases()?,
            grid: Grid::of(t0, to, plan.config.max_wait_ms),
            spread: TimeSpread::of(&demand.report),
        })
    }

    /// Replays to run.
    pub fn runs(&self) -> usize {
        self.cases.len() * self.plan.seeds.len()
    }

    /// Runs the sweep on all cores. `progress` is told, now and then, of each run how many requests
    /// have ended. The report is the same whatever the number of threads (its `wall_s`, which the
    /// caller knows, is left at 0). Memory: two copies of the demand for each thread.
    ///
    /// # Errors
    /// [`DecisionError`], which would be a defect of ours.
    pub fn run(&self, progress: &(dyn Fn(usize, u64) + Sync)) -> Result<TuneReport, DecisionError> {
        let seeds = &self.plan.seeds;
        let scores: Result<Vec<RunScore>, DecisionError> = (0..self.runs())
            .into_par_iter()
            // one run at a time is a task: neighbours differ in length
            .with_max_len(1)
            .map(|at| {
                let (case, seed) = (&self.cases[at / seeds.len()], seeds[at % seeds.len()]);
                self.score(case, seed, &|ended| progress(at, ended))
            })
            .collect();
        let mut scores = scores?.into_iter();
        let runs = (0..self.cases.len())
            .map(|_| scores.by_ref().take(seeds.len()).collect())
            .collect();
        let seed = seeds.first().copied().unwrap_or_default();
        let from = self.grid.drawn_from();
        Ok(self.report(&Scores { runs, from, seed }))
    }

    fn score(
        &self,
        case: &Case,
        seed: u64,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<RunScore, DecisionError> {
        let scenario = self.scenario(case, seed);
        let run = run(&scenario, case.policy, progress)?;
        Ok(RunScore::of(&self.grid, &scenario, &run, self.lost_s()))
    }

    /// The world of a case under a seed.
    fn scenario(&self, case: &Case, seed: u64) -> Scenario {
        let drawn;
        let fleet = match &self.plan.fleets[case.fleet] {
            TuneFleet::Recorded(fleet) => fleet,
            TuneFleet::Sampled(size) => {
                drawn = sample_fleet(self.demand, *size, seed, self.t0);
                &drawn
            }
        };
        let demand = self.spread.spread(self.demand, seed);
        // the same share of a window for every length
        let share = Draw::new(seed, "window phase").unit_f64();
        let phase = (share * case.config.window_ms.get() as f64) as i64;
        Scenario::new(case.config.clone(), seed, self.t0, &demand, fleet)
            .with_phase(DurationMs::new(phase))
            .with_behaviour(self.plan.behaviour)
            .with_trip_end_error(self.plan.trip_end_error)
            .with_demand_model(self.plan.demand_model.clone().filter(|_| case.learned))
    }

    /// What a lost rider costs, in every setting alike.
    fn lost_s(&self) -> f64 {
        self.plan.config.max_wait_ms.as_seconds() + self.plan.max_pickup_eta_s.largest()
    }

    fn report(&self, scores: &Scores) -> TuneReport {
        let blocks = scores.asked_in(0..self.grid.blocks);
        let mut sweep = Vec::new();
        let mut by_fleet = Vec::new();
        let mut rules = Vec::new();
        for fleet in 0..self.plan.fleets.len() {
            let rows = self.rows(scores, fleet, &blocks);
            by_fleet.push(FleetRecommendation {
                drivers: self.plan.fleets[fleet].size(),
                recommended: self.recommended(&rows, blocks.len()),
            });
            let cases = self.cases_where(|case| case.fleet == fleet);
            let compared: Vec<RuleReport> =
                compare_rules(scores, &self.cases, &cases, &blocks, &rows);
            rules.extend(compared);
            sweep.extend(rows);
        }
        let recommended = by_fleet.first().map_or_else(
            || recommend(&[], 0, 0, self.words()),
            |first| first.recommended.clone(),
        );
        TuneReport {
            input: self.demand.report.clone(),
            method: self.method(blocks.len()),
            sweep,
            recommended,
            by_fleet,
            by_hour: self.by_hour(scores),
            rules,
            notes: self.notes(),
            wall_s: 0.0,
            blocks: self.block_rows(scores),
        }
    }

    fn block_rows(&self, scores: &Scores) -> Vec<BlockRow> {
        let mut rows = Vec::new();
        for (case, runs) in self.cases.iter().zip(&scores.runs) {
            let setting = case.setting(&self.plan.fleets);
            for (&seed, run) in self.plan.seeds.iter().zip(runs) {
                let blocks = run.blocks.iter().enumerate();
                rows.extend(blocks.map(|(block, sums)| BlockRow {
                    setting,
                    seed,
                    block_from_ms: self.grid.start(block),
                    requests: sums.requests,
                    matched: sums.matched,
                    gave_up: sums.gave_up,
                    rider_s: sums.cost_s,
                    pickup_s: sums.eta_s,
                }));
            }
        }
        rows
    }

    fn cases_where(&self, keep: impl Fn(&Case) -> bool) -> Vec<usize> {
        (0..self.cases.len())
            .filter(|&case| keep(&self.cases[case]))
            .collect()
    }

    /// The case that a fleet's others are compared with.
    fn reference(&self, fleet: usize) -> usize {
        let is_it = |case: &Case| case.fleet == fleet && case.reference;
        self.cases.iter().position(is_it).unwrap_or(0)
    }

    /// The rows of a fleet, each rule a family of comparisons.
    fn rows(&self, scores: &Scores, fleet: usize, blocks: &[usize]) -> Vec<SweepRow> {
        let rules = &self.plan.rules;
        let mut rows = Vec::new();
        for policy in std::iter::once(&rules.swept).chain(&rules.beside) {
            let cases = self.cases_where(|c| c.fleet == fleet && c.policy == *policy);
            let compared = scores.compare(self.reference(fleet), &cases, blocks);
            for (&case, comparison) in cases.iter().zip(compared) {
                let totals = scores.totals(case, blocks);
                rows.push(self.row(scores, case, &totals, comparison));
            }
        }
        rows
    }

    fn row(
        &self,
        scores: &Scores,
        case: usize,
        totals: &Totals,
        comparison: super::report::Comparison,
    ) -> SweepRow {
        let (config, runs) = (&self.cases[case].config, &scores.runs[case]);
        let behaviour = self.plan.behaviour;
        let km = |totals: &Totals| {
            let empty = totals.eta_s * config.speed_kmh / 3600.0;
            (empty, totals.trip_km * config.detour)
        };
        let (empty_km, paid_km) = km(totals);
        let all_km = empty_km + paid_km;
        SweepRow {
            setting: self.cases[case].setting(&self.plan.fleets),
            reference: self.cases[case].reference,
            requests: totals.requests,
            matched: totals.matched,
            gave_up: behaviour.patience.map(|_| totals.gave_up),
            declined: behaviour
                .acceptance
                .map(|_| runs.iter().map(|run| run.declined).sum()),
            match_rate: totals.match_rate(),
            rider_cost_s: totals.rider_cost_s(),
            comparison,
            wait_s: mean_spread(&runs.iter().map(|run| &run.wait_s)),
            assign_delay_s: mean_spread(&runs.iter().map(|run| &run.assign_delay_s)),
            pickup_eta_s: mean_spread(&runs.iter().map(|run| &run.pickup_eta_s)),
            empty_km: empty_km / runs.len().max(1) as f64,
            empty_km_share: (all_km > 0.0).then(|| empty_km / all_km),
        }
    }

    fn recommended(&self, rows: &[SweepRow], blocks: usize) -> Recommendation {
        let swept = self.plan.rules.swept.name();
        let choices: Vec<Choice> = rows
            .iter()
            .filter(|row| row.setting.policy == swept)
            .map(|row| Choice {
                setting: row.setting,
                reference: row.reference,
                rider_cost_s: row.rider_cost_s,
                comparison: row.comparison,
                eta_per_trip_s: (row.matched > 0).then(|| row.empty_km / row.matched as f64),
            })
            .collect();
        recommend(&choices, blocks, self.block_min(), self.words())
    }

    fn block_min(&self) -> i64 {
        self.grid.block.get() / 60_000
    }

    fn words(&self) -> Words {
        Words {
            seeds: self.plan.seeds.len(),
            window_ends_ms: self.plan.windows.ends().map(DurationMs::get),
            windows: self.plan.windows.is_swept() && self.plan.rules.swept.has_windows(),
            caps: self.plan.max_pickup_eta_s.is_swept(),
            weights: self.plan.age_weight.is_swept(),
            plans: self.plan.plan_ahead.is_swept(),
            demands: self.plan.demand_ahead.is_swept(),
        }
    }

    /// The swept rule by hour of day, for each fleet.
    fn by_hour(&self, scores: &Scores) -> Vec<HourReport> {
        let hours = self.grid.hours(&self.plan.tz);
        let mut reports = Vec::new();
        for fleet in 0..self.plan.fleets.len() {
            for hour in 0..24_u8 {
                let blocks = scores.asked_in((0..hours.len()).filter(|&b| hours[b] == hour));
                if !blocks.is_empty() {
                    reports.push(self.hour(scores, fleet, hour, &blocks));
                }
            }
        }
        reports
    }

    fn hour(&self, scores: &Scores, fleet: usize, hour: u8, blocks: &[usize]) -> HourReport {
        let swept = self.plan.rules.swept;
        let cases = self.cases_where(|c| c.fleet == fleet && c.policy == swept);
        let compared = scores.compare(self.reference(fleet), &cases, blocks);
        let (mut sweep, mut choices, mut requests) = (Vec::new(), Vec::new(), 0);
        for (&case, comparison) in cases.iter().zip(compared) {
            let totals = scores.totals(case, blocks);
            let setting = self.cases[case].setting(&self.plan.fleets);
            let reference = self.cases[case].reference;
            let rider_cost_s = totals.rider_cost_s();
            let eta_per_trip_s = totals.eta_per_trip_s();
            let speed_kmh = self.cases[case].config.speed_kmh;
            requests = totals.requests;
            sweep.push(HourRow {
                window_ms: setting.window_ms,
                max_pickup_eta_s: setting.max_pickup_eta_s,
                age_weight: setting.age_weight,
                plan_ahead_ms: setting.plan_ahead_ms,
                demand_ahead_ms: setting.demand_ahead_ms,
                learned_demand: setting.learned_demand,
                reference,
                match_rate: totals.match_rate(),
                rider_cost_s,
                empty_km_per_trip: eta_per_trip_s.map(|eta| eta * speed_kmh / 3600.0),
                comparison,
            });
            choices.push(Choice {
                setting,
                reference,
                rider_cost_s,
                comparison,
                eta_per_trip_s,
            });
        }
        HourReport {
            hour,
            drivers: self.plan.fleets[fleet].size(),
            requests,
            blocks: blocks.len(),
            recommended: recommend(&choices, blocks.len(), self.block_min(), self.words()),
            sweep,
        }
    }

    fn method(&self, blocks: usize) -> MethodReport {
        let on_minute = self.demand.report.on_minute_share;
        MethodReport {
            seeds: self.plan.seeds.clone(),
            runs: self.runs(),
            requests: self.demand.trips.len(),
            scored_from_ms: self.grid.from,
            scored_to_ms: self.grid.to,
            block_ms: self.grid.block.get(),
            blocks,
            lost_rider_s: self.lost_s(),
            spread_over_minute_share: if self.spread.minutes() {
                on_minute
            } else {
                0.0
            },
            confidence: 1.0 - ALPHA,
            trip_end_error: self.looks_ahead().then(|| self.plan.trip_end_error.sigma()),
            patience: self.plan.behaviour.patience.map(|p| p.to_string()),
            acceptance: self.plan.behaviour.acceptance.map(|a| a.to_string()),
        }
    }

    /// Whether any setting looks ahead.
    fn looks_ahead(&self) -> bool {
        let looks = |case: &Case| case.policy == Policy::Batch && case.config.looks_ahead();
        self.cases.iter().any(looks)
    }

    /// Whether the learned demand knows the answer.
    fn learned_from_this(&self) -> bool {
        let replayed = self.demand.report.span();
        let model = self.plan.demand_model.as_deref();
        self.cases.iter().any(|case| case.learned)
            && model.is_some_and(|model| model.learned_from().meets(replayed))
    }

    fn notes(&self) -> Vec<String> {
        let behaviour = self.plan.behaviour;
        let left_out = match (behaviour.patience, behaviour.acceptance) {
            (None, None) => Some(
                "Nobody gives up or declines in these replays, so the trade between waiting and \
                 driving leaves out cancellations and declines: --patience and --acceptance bring \
                 them in.",
            ),
            (None, Some(_)) => {
                Some("Riders never give up in these replays: --patience brings that in.")
            }
            (Some(_), None) => {
                Some("Drivers never decline in these replays: --acceptance brings that in.")
            }
            (Some(_), Some(_)) => None,
        };
        let mut notes: Vec<String> = left_out.into_iter().map(str::to_owned).collect();
        if self.looks_ahead() {
            notes.push(format!(
                "Windows that look ahead know the end of a trip with an error: the logarithm of the \
                 time left of it is off by a normal draw of standard deviation {} \
                 (--trip-end-error).",
                self.plan.trip_end_error
            ));
        }
        if self.learned_from_this() {
            notes.push(
                "Demand was learned from the very time that is replayed: what it gains here it need \
                 not gain on other days."
                    .into(),
            );
        }
        if self.grid.drawn_from() == DrawnFrom::Nearby {
            notes.push(
                "The intervals take the course of this recording as given: they say how sure a \
                 difference is for demand that runs as this did, not for other days."
                    .into(),
            );
        }
        if self.plan.seeds.len() < 2 {
            notes.push(
                "One seed: the intervals leave out the luck of the fleet, the times and the phase."
                    .into(),
            );
        }
        notes
    }
}
