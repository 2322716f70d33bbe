//! Telling the world of a sealed window: metrics and a log line.

use std::time::Duration;

use super::{leader::WindowError, report::DecidedWindow};
use crate::{
    decision::WindowSnapshot,
    domain::{RegionId, WindowSeq},
    protocol::{ReportSource, WindowRecord, WindowRefusal, WindowReport},
    telemetry,
};

/// Tells of a write for a window that had another owner by then, and was refused.
pub(super) fn too_late(region: &RegionId, seq: WindowSeq, error: &WindowError) {
    if matches!(error, WindowError::Refused(WindowRefusal::WindowLost)) {
        tracing::info!(%region, window_seq = seq.get(), "came too late: the window has another owner");
    }
}

/// Tells of a window that this node sealed.
pub(super) fn sealed(
    region: &RegionId,
    window: &WindowRecord,
    snapshot: &WindowSnapshot,
    decided: &DecidedWindow<'_>,
    report: &WindowReport,
) {
    let source = match report.body.source {
        ReportSource::Batch => "batch",
        ReportSource::Fallback => "fallback",
        ReportSource::None => "none",
    };
    let phases = telemetry::Phases {
        build: decided.times.build,
        eta: decided.times.eta,
        solve: decided.times.solve,
        verify: decided.times.verify,
        claim: decided.claim,
    };
    telemetry::window(region, source, &phases, report);
    telemetry::epoch(region, report.epoch);
    if report.sealed_at_ms > report.closed_at_ms + window.budget_ms + window.grace_ms {
        telemetry::window_late(region);
    }
    if let Some(cause) = decided.cause {
        telemetry::fallback(region, cause);
    }
    for left in decided.unmatched() {
        telemetry::unmatched(region, left.reason.name(), 1);
    }
    telemetry::claims_lost(region, decided.claim_lost.into());
    if let Some(facts) = decided.decision.gains() {
        let (oldest, edge) = (facts.gain_vs_greedy, facts.gain_vs_greedy_edge);
        telemetry::gains(region, oldest.as_seconds(), edge.as_seconds());
    }
    for pending in snapshot.requests() {
        if decided.has_claim(&pending.request.id) {
            telemetry::request_age(region, snapshot.age(&pending.request));
        }
    }
    let close_to_seal = report.sealed_at_ms - report.closed_at_ms;
    tracing::info!(
        %region,
        window_seq = report.window_seq.get(),
        source,
        cause = decided.cause.unwrap_or("-"),
        requests = report.body.requests,
        assigned = report.assigned,
        claim_lost = decided.claim_lost,
        close_to_seal_ms = close_to_seal.get(),
        solve_ms = in_ms(decided.times.solve),
        "window sealed"
    );
}

fn in_ms(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
