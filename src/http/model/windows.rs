//! Reports of the region's windows.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    domain::{DurationMs, Finite, RegionId, UnixMs},
    protocol::{ReportSource, ReportView, WindowReport},
};

/// How a window was decided and what came of it. Times of phases in milliseconds.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WindowReport)]
pub struct ReportBody {
    /// The region.
    pub region: String,
    /// The window.
    pub window_seq: u64,
    /// Its length on the grid.
    #[schema(value_type = i64)]
    pub window_ms: DurationMs,
    /// The configuration when it opened.
    pub config_version: u64,
    /// The life of the data.
    pub generation: u64,
    /// The leadership.
    pub epoch: u64,
    /// When it opened.
    #[schema(value_type = i64)]
    pub opened_at_ms: UnixMs,
    /// When it closed.
    #[schema(value_type = i64)]
    pub closed_at_ms: UnixMs,
    /// When it was sealed.
    #[schema(value_type = i64)]
    pub sealed_at_ms: UnixMs,
    /// `batch`, `fallback` or `none`.
    #[schema(value_type = String)]
    pub source: ReportSource,
    /// Why it was not a batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub cause: Option<Arc<str>>,
    /// Requests of the snapshot.
    pub requests: u32,
    /// Requests beyond it.
    pub deferred: u32,
    /// Drivers that could be chosen.
    pub drivers: u32,
    /// Candidate pairs.
    pub edges: u32,
    /// Claims made for it.
    pub assigned: u32,
    /// Requests left over, by reason.
    #[schema(value_type = BTreeMap<String, u32>)]
    pub unmatched: BTreeMap<Arc<str>, u32>,
    /// Drivers that could not be chosen, by reason.
    #[schema(value_type = BTreeMap<String, u32>)]
    pub excluded: BTreeMap<Arc<str>, u32>,
    /// How far the solver came; `null` where a greedy rule decided, as are the next.
    #[schema(value_type = Option<String>)]
    pub status: Option<Arc<str>>,
    /// How it solved.
    #[schema(value_type = Option<String>)]
    pub method: Option<Arc<str>>,
    /// Relative distance to the bound.
    #[schema(value_type = Option<f64>)]
    pub gap: Option<Finite>,
    /// Time for the candidate graph.
    #[schema(value_type = f64)]
    pub build_ms: Finite,
    /// Time for the travel times.
    #[schema(value_type = f64)]
    pub eta_ms: Finite,
    /// Time to solve.
    #[schema(value_type = f64)]
    pub solve_ms: Finite,
    /// Time to verify.
    #[schema(value_type = f64)]
    pub verify_ms: Finite,
    /// Time to claim.
    #[schema(value_type = f64)]
    pub claim_ms: Finite,
    /// Sum of the travel times of what was assigned.
    #[schema(value_type = f64)]
    pub total_eta_s: Finite,
    /// What oldest-first greedy would have cost more.
    #[schema(value_type = Option<f64>)]
    pub gain_vs_greedy_s: Option<Finite>,
    /// What greedy by edges would have cost more.
    #[schema(value_type = Option<f64>)]
    pub gain_vs_greedy_edge_s: Option<Finite>,
    /// Pairs lost at the claim.
    pub claim_lost: u32,
    /// Hash of the snapshot.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub snapshot_hash: Option<Arc<str>>,
    /// Of its `planned` requests, the longest time in seconds since a window first planned one;
    /// while a window looks ahead the gains are `null`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, nullable = false)]
    pub planned_age_s: Option<Finite>,
    /// Every decision of the window; kept for the last 50 windows, in the report of one window
    /// alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>, nullable = false)]
    pub decisions: Option<Value>,
}

/// Reports, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct WindowsPage {
    /// The reports.
    pub windows: Vec<ReportBody>,
    /// Go on after this window; always usable.
    pub next: u64,
}

impl ReportBody {
    pub(crate) fn new(region: &RegionId, report: &WindowReport) -> Self {
        let body = report.body.clone();
        Self {
            region: region.to_string(),
            window_seq: report.window_seq.get(),
            window_ms: report.window_ms,
            config_version: report.config_version.get(),
            generation: report.generation.get(),
            epoch: report.epoch.get(),
            opened_at_ms: report.opened_at_ms,
            closed_at_ms: report.closed_at_ms,
            sealed_at_ms: report.sealed_at_ms,
            source: body.source,
            cause: body.cause,
            requests: body.requests,
            deferred: body.deferred,
            drivers: body.drivers,
            edges: body.edges,
            assigned: report.assigned,
            unmatched: body.unmatched,
            excluded: body.excluded,
            status: body.status,
            method: body.method,
            gap: body.gap,
            build_ms: body.build_ms,
            eta_ms: body.eta_ms,
            solve_ms: body.solve_ms,
            verify_ms: body.verify_ms,
            claim_ms: body.claim_ms,
            total_eta_s: body.total_eta_s,
            gain_vs_greedy_s: body.gain_vs_greedy_s,
            gain_vs_greedy_edge_s: body.gain_vs_greedy_edge_s,
            claim_lost: body.claim_lost,
            snapshot_hash: body.snapshot_hash,
            planned_age_s: body.planned_age_s,
            decisions: None,
        }
    }

    pub(crate) fn with_decisions(region: &RegionId, view: &ReportView) -> Self {
        let decisions = view.decisions.as_ref();
        Self {
            decisions: decisions.and_then(|text| serde_json::from_str(text).ok()),
            ..Self::new(region, &view.report)
        }
    }
}
