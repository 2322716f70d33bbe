//! The leader's part: take a window at its close, decide it within its budget, claim, repair once,
//! seal.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use kheya_solver::{Budget, Method, Options};
use tokio::{sync::watch, task::spawn_blocking, time::sleep};

use super::{
    claims::{ClaimError, Claims, Outcomes},
    decider::Decider,
    level::ServedLevel,
    report::{DecidedWindow, PhaseTimes},
    snapshot::window_snapshot,
    tell,
};
use crate::{
    decision::{Batch, DecisionError, WindowDecision, WindowSnapshot, decide_oldest_first, repair},
    domain::{RegionId, RequestId, UnixMs, WindowSeq},
    eta::StraightLine,
    leadership::Lead,
    protocol::{
        PairOutcome, ReportSource, Seal, Snapshot, TakeWindow, TakenWindow, Taker, WindowRefusal,
        WindowReport,
    },
    record::{Recorder, WindowEntry, WindowSource},
    store::{Clock, RegionSignal, Store, StoreError},
};

/// What the tasks of a region share.
#[derive(Clone)]
pub(super) struct RegionContext {
    pub(super) store: Arc<dyn Store>,
    pub(super) region: RegionId,
    pub(super) decider: Arc<dyn Decider>,
    /// Tells when to wake; what counts is the store's clock.
    pub(super) clock: Arc<dyn Clock>,
    /// Where decided windows are recorded.
    pub(super) recorder: Option<Recorder>,
    /// How the region was served last.
    pub(super) level: Arc<ServedLevel>,
}

/// Why a window was not decided by this node.
#[derive(Debug, thiserror::Error)]
pub(super) enum WindowError {
    /// The store refused: another node has it, or it is not time yet.
    #[error(transparent)]
    Refused(#[from] WindowRefusal),
    /// The store gave no answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// This node's leadership is over.
    #[error("the leadership is over")]
    LeadershipOver,
    /// The thread that decided it died.
    #[error("the decision panicked")]
    Panicked,
}

impl From<ClaimError> for WindowError {
    fn from(error: ClaimError) -> Self {
        match error {
            ClaimError::Refused(refusal) => Self::Refused(refusal),
            ClaimError::Store(error) => Self::Store(error),
        }
    }
}

/// Share of what is left of the budget that the solve may take; the rest is for claims and seal.
const SOLVE_SHARE: f64 = 0.6;

/// Below this there is no use in starting a solve.
const LEAST_SOLVE: Duration = Duration::from_millis(2);

/// Longest sleep before looking again, so that a clock that jumps is noticed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Pause after a window could not be decided, before it is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(25);

/// Decides the windows of a region while this node leads it, until `stop` turns true.
pub(super) async fn lead(
    context: RegionContext,
    mut signal: watch::Receiver<RegionSignal>,
    mut held: watch::Receiver<Option<Lead>>,
    mut stop: watch::Receiver<bool>,
) {
    while !*stop.borrow() {
        let lead = (*held.borrow_and_update()).filter(Lead::holds);
        let window = signal.borrow_and_update().window;
        let wait = match (lead, window) {
            (Some(lead), Some(window)) => {
                let wait = until(&*context.clock, window.closes_at_ms);
                if wait.is_zero() {
                    match decide_window(&context, lead, window.seq).await {
                        Ok(()) => continue,
                        Err(error) => {
                            tracing::debug!(region = %context.region, window_seq = window.seq.get(), %error, "window not decided");
                            TRY_AGAIN
                        }
                    }
                } else {
                    wait.min(LOOK_AGAIN)
                }
            }
            _ => LOOK_AGAIN,
        };
        tokio::select! {
            () = sleep(wait) => {}
            changed = signal.changed() => if changed.is_err() { return },
            changed = held.changed() => if changed.is_err() { return },
            _ = stop.changed() => {}
        }
    }
}

/// How long from now until an instant of the store's clock; nothing when it has passed.
pub(super) fn until(clock: &dyn Clock, at: UnixMs) -> Duration {
    let micros = at
        .get()
        .saturating_mul(1000)
        .saturating_sub(clock.now().micros() as i64);
    Duration::from_micros(micros.max(0) as u64)
}

/// A taken window with what it is decided on.
pub(super) struct Taken {
    pub(super) window: TakenWindow,
    pub(super) read: Box<Snapshot>,
}

/// Takes a window and reads what its decision needs.
pub(super) async fn take(
    context: &RegionContext,
    seq: WindowSeq,
    taker: Taker,
) -> Result<Taken, WindowError> {
    let take = TakeWindow {
        window_seq: seq,
        taker,
    };
    let window = match context.store.take_window(&context.region, take).await {
        // a repeat of the same take gets the first answer
        Err(StoreError::OutcomeUnknown(_)) => {
            context.store.take_window(&context.region, take).await
        }
        answer => answer,
    }??;
    let read = context
        .store
        .snapshot(&context.region, seq)
        .await?
        .ok_or(WindowRefusal::WindowLost)?;
    Ok(Taken { window, read })
}

/// A decision on its way to the claims.
struct Decided {
    snapshot: Arc<WindowSnapshot>,
    batch: Result<Arc<Batch>, DecisionError>,
    /// The greedy decision, where there is no batch.
    greedy: Option<WindowDecision>,
    times: PhaseTimes,
}

async fn decide_window(
    context: &RegionContext,
    lead: Lead,
    seq: WindowSeq,
) -> Result<(), WindowError> {
    let taker = Taker::Leader {
        epoch: lead.epoch,
        nonce: lead.nonce,
    };
    let Taken { window, read } = take(context, seq, taker).await?;
    let (requests, deferred) = (read.requests.len(), read.deferred);
    let deadline_ms = window.window.closes_at_ms + window.window.budget_ms;
    let left = Duration::from_millis((deadline_ms - read.now_ms).get().max(0) as u64);
    let deadline = Instant::now() + left;

    let decided = decide_on_a_thread(context, read, left.mul_f64(SOLVE_SHARE)).await?;
    if !lead.holds() {
        return Err(WindowError::LeadershipOver);
    }
    let claiming = Instant::now();
    let mut claims = Claims {
        store: &*context.store,
        region: &context.region,
        window_seq: seq,
        owner: window.owner,
        next_batch: 0,
        give_up: deadline.into(),
    };
    let (first, cause) = match (&decided.batch, &decided.greedy) {
        (Ok(batch), _) => (&batch.decision, None),
        (Err(_), Some(greedy)) => (greedy, Some("solver_failed")),
        (Err(_), None) => return Err(WindowError::Panicked),
    };
    let hashed = hash_on_a_thread(&decided.snapshot);
    let mut outcomes = claims.claim(&first.assignments).await?;
    let lost = lost_requests(&outcomes);
    let mut claim_lost = lost.len() as u32;
    let repaired = match &decided.batch {
        Ok(batch) if !lost.is_empty() && Instant::now() < deadline => {
            repair_window(
                &mut claims,
                &decided.snapshot,
                batch,
                &lost,
                deadline,
                &mut outcomes,
            )
            .await?
        }
        _ => None,
    };
    if repaired.is_some() {
        claim_lost += lost_requests(&outcomes).difference(&lost).count() as u32;
    }
    let report = DecidedWindow {
        source: if cause.is_none() {
            ReportSource::Batch
        } else {
            ReportSource::Fallback
        },
        cause,
        decision: repaired.as_ref().unwrap_or(first),
        requests,
        deferred,
        outcomes: &outcomes,
        claim_lost,
        times: decided.times,
        claim: claiming.elapsed(),
        snapshot_hash: hashed.await.ok(),
    };
    let seal = Seal {
        window_seq: seq,
        owner: window.owner,
        body: report.body(),
        decisions: report.decisions(),
    };
    let sealed = seal_window(context, seal).await;
    if let Ok(sealed) = &sealed {
        tell::sealed(
            &context.region,
            &window.window,
            &decided.snapshot,
            &report,
            sealed,
        );
        context.level.store(report.source);
    }
    // what was claimed is claimed, whoever seals
    if let Some(recorder) = &context.recorder {
        let lost: Vec<RequestId> = lost.into_iter().collect();
        recorder.window(WindowEntry {
            region: &context.region,
            window_seq: Some(seq),
            window_id: None,
            source: if cause.is_none() {
                WindowSource::Batch
            } else {
                WindowSource::Fallback
            },
            snapshot: &decided.snapshot,
            decision: first,
            claim_lost: &lost,
            repaired: repaired.as_ref(),
        });
    }
    sealed.map(|_| ())
}

/// Seals, asking again while the outcome is not known: the repeat gets the first report.
pub(super) async fn seal_window(
    context: &RegionContext,
    seal: Seal,
) -> Result<Arc<WindowReport>, WindowError> {
    for _ in 0..3 {
        match context.store.seal(&context.region, seal.clone()).await {
            Err(StoreError::OutcomeUnknown(_)) => sleep(TRY_AGAIN).await,
            answer => return Ok(answer??),
        }
    }
    Err(StoreError::OutcomeUnknown("the seal was not answered".into()).into())
}

async fn decide_on_a_thread(
    context: &RegionContext,
    read: Box<Snapshot>,
    budget: Duration,
) -> Result<Decided, WindowError> {
    let (decider, region) = (context.decider.clone(), context.region.clone());
    let decided = spawn_blocking(move || {
        let entered = Instant::now();
        let snapshot = Arc::new(window_snapshot(&region, &read));
        let mut times = PhaseTimes {
            build: entered.elapsed(),
            ..PhaseTimes::default()
        };
        let mut started = Instant::now();
        let left = budget.saturating_sub(entered.elapsed());
        // with no time for a solve, the cheapest pair first is the better part of one
        let method = if left < LEAST_SOLVE {
            Method::GreedyEdge
        } else {
            Method::Auto
        };
        let batch = decider.decide(&snapshot, method, left, &mut |phase| {
            times.add(phase, started.elapsed());
            started = Instant::now();
        });
        let greedy = batch.as_ref().err().map(|error| {
            tracing::error!(%region, %error, "window decided by the greedy rule instead");
            decide_oldest_first(&snapshot, &StraightLine::of(snapshot.config()))
        });
        Decided {
            snapshot,
            batch: batch.map(Arc::new),
            greedy,
            times,
        }
    });
    decided.await.map_err(|_| WindowError::Panicked)
}

fn hash_on_a_thread(snapshot: &Arc<WindowSnapshot>) -> impl Future<Output = Result<Arc<str>, ()>> {
    let snapshot = snapshot.clone();
    let hashing = spawn_blocking(move || crate::decision::snapshot_hash(&snapshot));
    async move { hashing.await.map_err(|_| ()) }
}

pub(super) fn lost_requests(outcomes: &Outcomes) -> BTreeSet<RequestId> {
    let lost = outcomes
        .iter()
        .filter(|(_, outcome)| matches!(outcome, PairOutcome::Lost(_)));
    lost.map(|(id, _)| id.clone()).collect()
}

/// Solves once more for what was lost, and claims what that adds.
async fn repair_window(
    claims: &mut Claims<'_>,
    snapshot: &Arc<WindowSnapshot>,
    batch: &Arc<Batch>,
    lost: &BTreeSet<RequestId>,
    deadline: Instant,
    outcomes: &mut Outcomes,
) -> Result<Option<WindowDecision>, WindowError> {
    let left = deadline
        .saturating_duration_since(Instant::now())
        .mul_f64(SOLVE_SHARE);
    let (snapshot, batch, lost) = (snapshot.clone(), batch.clone(), lost.clone());
    let repairing = spawn_blocking(move || {
        let options = Options {
            budget: Some(Budget::wall(left)),
            ..Options::default()
        };
        repair(&snapshot, &batch, &lost, &options)
    });
    let repaired = match repairing.await.map_err(|_| WindowError::Panicked)? {
        Ok(repaired) => repaired,
        Err(error) => {
            tracing::error!(region = %claims.region, %error, "repair failed");
            return Ok(None);
        }
    };
    outcomes.extend(claims.claim(&repaired.added).await?);
    Ok(Some(repaired.decision))
}
