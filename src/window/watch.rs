//! The watch: every node looks after every region it serves, on a thread that no solve can block.
//! A window that was not sealed in time is taken over and decided by the greedy rule; what is due is
//! swept, in idle regions too.

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use tokio::{
    sync::watch,
    task::spawn_blocking,
    time::{Duration, sleep},
};

use super::{
    ahead::WindowAhead,
    claims::{Claims, Outcomes},
    leader::{
        RegionContext, Taken, WindowError, lost_requests, seal_window, take, until, waiting_after,
    },
    report::{DecidedWindow, PhaseTimes},
    snapshot::{region_config, window_snapshot},
    tell,
};
use crate::{
    decision::{Assignment, WindowDecision, WindowSnapshot, decide_oldest_first},
    domain::{DriverId, RequestId},
    eta::StraightLine,
    http::Level,
    leadership::{Lead, draw_nonce},
    protocol::{PairOutcome, ReportSource, Seal, Snapshot, Sweep, TakenWindow, Taker},
    record::{WindowEntry, WindowSource},
    store::{RegionSignal, WindowSignal},
    telemetry,
};

/// Time between two sweeps of a region with something due.
const SWEEP_EVERY: Duration = Duration::from_millis(500);

/// Time between two sweeps of a region with nothing due: old events go, too.
const SWEEP_ANYWAY_EVERY: Duration = Duration::from_mins(1);

/// Time between two looks at a region as a whole, for its gauges, by its leader.
const GAUGES_EVERY: Duration = Duration::from_secs(5);

/// The same by a node that does not lead it: reading a region costs as much as its drivers.
const GAUGES_EVERY_OTHERWISE: Duration = Duration::from_secs(30);

/// Longest sleep before looking again, so that a clock that jumps is noticed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Pause after a take-over that came to nothing.
const TRY_AGAIN: Duration = Duration::from_millis(50);

/// Longest time a take-over asks for outcomes that are not known.
const ASK_FOR: Duration = Duration::from_secs(2);

/// Takes overdue windows of a region over until `stop` turns true.
pub(super) async fn take_over_missed(
    context: RegionContext,
    mut signal: watch::Receiver<RegionSignal>,
    mut stop: watch::Receiver<bool>,
) {
    while !*stop.borrow() {
        let window = signal.borrow_and_update().window;
        let wait = match window {
            Some(window) => {
                let wait = until(&*context.clock, window.overdue_at_ms);
                if wait.is_zero() {
                    if let Err(error) = take_over(&context, window).await {
                        tracing::debug!(region = %context.region, window_seq = window.seq.get(), %error, "window not taken over");
                    }
                    TRY_AGAIN
                } else {
                    wait.min(LOOK_AGAIN)
                }
            }
            None => LOOK_AGAIN,
        };
        tokio::select! {
            () = sleep(wait) => {}
            changed = signal.changed() => if changed.is_err() { return },
            _ = stop.changed() => {}
        }
    }
}

/// Sweeps what is due in a region until `stop` turns true. Idle regions have nothing due and cost
/// nothing but the look.
pub(super) async fn sweep_due(
    context: RegionContext,
    signal: watch::Receiver<RegionSignal>,
    held: watch::Receiver<Option<Lead>>,
    mut stop: watch::Receiver<bool>,
) {
    let mut gauges_due = Instant::now();
    let mut sweep_anyway = Instant::now() + SWEEP_ANYWAY_EVERY;
    // nodes that started together do not sweep together
    let offset = draw_nonce().get() % SWEEP_EVERY.as_millis() as u64;
    sleep(Duration::from_millis(offset)).await;
    while !*stop.borrow() {
        let RegionSignal {
            lost,
            next_due_ms: due,
            ..
        } = *signal.borrow();
        context.level.store_reached(!lost);
        let is_due = due.is_some_and(|due| until(&*context.clock, due).is_zero());
        if is_due || Instant::now() >= sweep_anyway {
            sweep_anyway = Instant::now() + SWEEP_ANYWAY_EVERY;
            // a full step may have left more; the next one comes at once, but not for ever
            for _ in 0..40 {
                match context.store.sweep(&context.region, Sweep {}).await {
                    Ok(swept) if swept.more => {}
                    Ok(_) => break,
                    Err(error) => {
                        tracing::debug!(region = %context.region, %error, "not swept");
                        break;
                    }
                }
            }
        }
        if Instant::now() >= gauges_due {
            let leads = held.borrow().is_some();
            gauges_due = Instant::now()
                + if leads {
                    GAUGES_EVERY
                } else {
                    GAUGES_EVERY_OTHERWISE
                };
            tell_gauges(&context).await;
        }
        telemetry::leading(&context.region, held.borrow().is_some());
        tell_level(&context);
        tokio::select! {
            () = sleep(SWEEP_EVERY) => {}
            _ = stop.changed() => {}
        }
    }
}

/// Tells what the region holds at present.
async fn tell_gauges(context: &RegionContext) {
    match context.store.overview(&context.region).await {
        Ok(view) => {
            // another node may have sealed the last one
            if let Some(last) = &view.last_window {
                context.level.sealed(last.body.source);
            }
            telemetry::overview(&context.region, &view);
        }
        Err(error) => {
            tracing::debug!(region = %context.region, %error, "region not read");
        }
    }
}

fn tell_level(context: &RegionContext) {
    let level = match context.level.load() {
        Level::Batch => telemetry::Level::Batch,
        Level::BatchStraightLine => telemetry::Level::BatchStraightLine,
        Level::Greedy => telemetry::Level::Greedy,
        Level::Unavailable => telemetry::Level::Unavailable,
    };
    telemetry::level(&context.region, level);
}

/// Takes one overdue window over and decides it by the greedy rule.
async fn take_over(context: &RegionContext, missed: WindowSignal) -> Result<(), WindowError> {
    let taker = Taker::Fallback {
        nonce: draw_nonce(),
    };
    let Taken { window, mut read } = take(context, missed.seq, taker).await?;
    let cause = if missed.taken {
        "leader_late"
    } else {
        "no_leader"
    };
    // what another owner claimed before is part of the window too
    let requests = read.requests.len() + window.window.claimed as usize;
    let deferred = read.deferred;
    let config = region_config(&context.region, &read.document);
    let pending = config.looks_ahead().then(|| read.requests.clone());
    let (mut outcomes, mut made) = (Outcomes::new(), Vec::<Assignment>::new());
    let (mut claim_lost, mut times) = (0, PhaseTimes::default());
    let claiming = Instant::now();
    let mut claims = Claims {
        store: &*context.store,
        region: &context.region,
        window_seq: missed.seq,
        owner: window.owner,
        next_batch: window.window.next_batch,
        may_claim: &|| true,
        give_up: (claiming + ASK_FOR).into(),
    };
    let mut lost_drivers = BTreeSet::new();
    let mut round = 0;
    let (snapshot, decision) = loop {
        let (snapshot, decision) = decide(context, read, &lost_drivers, &mut times).await?;
        let claimed = claims
            .claim(&decision.assignments)
            .await
            .map_err(WindowError::from)
            .inspect_err(|error| tell::too_late(&context.region, missed.seq, error))?;
        let lost = lost_requests(&claimed);
        claim_lost += lost.len() as u32;
        record_round(context, missed, &snapshot, &decision, &lost);
        let (kept, gone): (Vec<_>, Vec<_>) = decision
            .assignments
            .iter()
            .cloned()
            .partition(|pair| !lost.contains(&pair.request_id));
        made.extend(kept);
        lost_drivers.extend(gone.into_iter().map(|pair| pair.driver_id));
        outcomes.extend(claimed);
        round += 1;
        if lost.is_empty() || round >= snapshot.config().max_attempts {
            break (snapshot, decision);
        }
        // only what is still pending is read again
        match context.store.snapshot(&context.region, missed.seq).await? {
            Some(again) => read = again,
            None => break (snapshot, decision),
        }
    };
    // the greedy rule does not look ahead, but hands on what the windows before saw
    let ahead = match pending {
        Some(pending) => {
            let (store, region) = (&*context.store, &context.region);
            let now = snapshot.now();
            let since = now - config.demand_ahead_ms;
            // another take-over may follow one grace after this one
            let reading = Duration::from_millis(window.window.grace_ms.get() as u64) / 4;
            let shared = &context.ahead;
            let mut ahead =
                WindowAhead::recall(store, region, shared, missed.seq, since, reading).await;
            ahead.foresight(&config, None, &pending, now);
            let waits = waiting_after(&snapshot, &outcomes);
            ahead.decided(&decision, now, |request| waits.contains(request));
            Some(ahead)
        }
        None => None,
    };
    seal(
        context,
        &window,
        &snapshot,
        decision,
        Work {
            ahead,
            cause,
            requests,
            deferred,
            outcomes,
            made,
            claim_lost,
            times,
            claim: claiming.elapsed(),
        },
    )
    .await
}

/// Each round of a take-over is recorded for itself, since each is decided on its own snapshot.
fn record_round(
    context: &RegionContext,
    missed: WindowSignal,
    snapshot: &WindowSnapshot,
    decision: &WindowDecision,
    lost: &BTreeSet<RequestId>,
) {
    let Some(recorder) = &context.recorder else {
        return;
    };
    let lost: Vec<RequestId> = lost.iter().cloned().collect();
    recorder.window(WindowEntry {
        region: &context.region,
        window_seq: Some(missed.seq),
        window_id: None,
        source: WindowSource::Fallback,
        snapshot,
        decision,
        claim_lost: &lost,
        repaired: None,
    });
}

/// What a take-over did before its seal.
struct Work {
    ahead: Option<WindowAhead>,
    cause: &'static str,
    requests: usize,
    deferred: u32,
    outcomes: Outcomes,
    made: Vec<Assignment>,
    claim_lost: u32,
    times: PhaseTimes,
    claim: Duration,
}

async fn seal(
    context: &RegionContext,
    taken: &TakenWindow,
    snapshot: &WindowSnapshot,
    mut decision: WindowDecision,
    work: Work,
) -> Result<(), WindowError> {
    let last_round = std::mem::replace(&mut decision.assignments, work.made);
    let claimed = |pair: &Assignment| {
        matches!(
            work.outcomes.get(&pair.request_id),
            Some(PairOutcome::Claimed { .. })
        )
    };
    decision
        .assignments
        .extend(last_round.into_iter().filter(|pair| !claimed(pair)));
    let report = DecidedWindow {
        source: ReportSource::Fallback,
        cause: Some(work.cause),
        decision: &decision,
        requests: work.requests,
        deferred: work.deferred,
        outcomes: &work.outcomes,
        claim_lost: work.claim_lost,
        times: work.times,
        claim: work.claim,
        snapshot_hash: None,
        planned_age_s: None,
        ahead: work.ahead.as_ref().map(WindowAhead::note),
    };
    let seal = Seal {
        window_seq: taken.window.seq,
        owner: taken.owner,
        body: report.body(),
        decisions: report.decisions(),
    };
    let sealed = seal_window(context, seal)
        .await
        .inspect_err(|error| tell::too_late(&context.region, taken.window.seq, error))?;
    tell::sealed(&context.region, &taken.window, snapshot, &report, &sealed);
    context.level.sealed(report.source);
    if let Some(ahead) = work.ahead {
        ahead.remember(&context.ahead);
    }
    Ok(())
}

/// The greedy decision of what is pending, without the drivers lost in earlier rounds.
async fn decide(
    context: &RegionContext,
    read: Box<Snapshot>,
    lost_drivers: &BTreeSet<DriverId>,
    times: &mut PhaseTimes,
) -> Result<(Arc<WindowSnapshot>, WindowDecision), WindowError> {
    let region = context.region.clone();
    let lost = lost_drivers.clone();
    let started = Instant::now();
    let decided = spawn_blocking(move || {
        let mut read = read;
        read.drivers.retain(|driver| !lost.contains(&driver.id));
        let snapshot = Arc::new(window_snapshot(&region, &read));
        let decision = decide_oldest_first(&snapshot, &StraightLine::of(snapshot.config()));
        (snapshot, decision)
    });
    let decided = decided.await.map_err(|_| WindowError::Panicked)?;
    times.solve += started.elapsed();
    Ok(decided)
}
