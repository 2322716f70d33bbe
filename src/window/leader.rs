//! The leader's part: take a window at its close, decide it within its budget, claim, repair once,
//! seal.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use kheya_solver::{Budget, Method, Options};
use tokio::{sync::watch, task::spawn_blocking, time::sleep};

use super::{
    ahead::{SharedMemory, WindowAhead},
    claims::{ClaimError, Claims, Outcomes},
    decider::Decider,
    level::ServedLevel,
    report::{DecidedWindow, PhaseTimes},
    snapshot::{region_config, window_snapshot},
    tell,
};
use crate::{
    decision::{Batch, Foresight, WindowDecision, WindowSnapshot, decide_oldest_first, repair},
    demand::DemandModel,
    domain::{RegionId, RequestId, UnixMs, WindowSeq},
    eta::StraightLine,
    leadership::{Duty, Lead},
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
    /// Tells when to wake; what counts is what the store says then.
    pub(super) clock: Arc<dyn Clock>,
    /// Where decided windows are recorded.
    pub(super) recorder: Option<Recorder>,
    /// What this node is to do for the region.
    pub(super) duty: Arc<Duty>,
    /// How the region was served last.
    pub(super) level: Arc<ServedLevel>,
    /// What its windows expect of the next riders, where it was learned.
    pub(super) demand_model: Option<Arc<DemandModel>>,
    /// What its windows remember of each other where they look ahead.
    pub(super) ahead: SharedMemory,
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
            ClaimError::LeadershipOver => Self::LeadershipOver,
            ClaimError::OtherPairs => {
                Self::Store(StoreError::Broken("answered for other pairs".into()))
            }
            ClaimError::Store(error) => Self::Store(error),
        }
    }
}

/// Share of what is left of the budget that the solve may take; the rest is for claims and seal.
const SOLVE_SHARE: f64 = 0.6;

/// Share of what is left of the budget in which a new leader reads back what windows remember.
const RECALL_SHARE: f64 = 0.25;

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
                    context.duty.decide(true);
                    let decided = decide_window(&context, &held, lead, window.seq).await;
                    context.duty.decide(false);
                    match decided {
                        Ok(()) => continue,
                        // somebody else has it: the signal tells when it is sealed
                        Err(WindowError::Refused(WindowRefusal::WindowLost)) => LOOK_AGAIN,
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
    /// The batch; or the greedy decision, where the solver failed.
    batch: Result<Arc<Batch>, WindowDecision>,
    times: PhaseTimes,
}

async fn decide_window(
    context: &RegionContext,
    held: &watch::Receiver<Option<Lead>>,
    lead: Lead,
    seq: WindowSeq,
) -> Result<(), WindowError> {
    let taker = Taker::Leader {
        epoch: lead.epoch,
        nonce: lead.nonce,
    };
    let Taken { window, read } = take(context, seq, taker).await?;
    // what another owner claimed before is part of the window too
    let requests = read.requests.len() + window.window.claimed as usize;
    let deferred = read.deferred;
    let deadline_ms = window.window.closes_at_ms + window.window.budget_ms;
    let left = Duration::from_millis((deadline_ms - read.now_ms).get().max(0) as u64);
    let deadline = Instant::now() + left;

    let config = region_config(&context.region, &read.document);
    let mut ahead = None;
    let mut foresight = Foresight::default();
    if config.looks_ahead() {
        let (store, region) = (&*context.store, &context.region);
        let since = read.now_ms - config.demand_ahead_ms;
        let reading = left.mul_f64(RECALL_SHARE);
        let mut recalled =
            WindowAhead::recall(store, region, &context.ahead, seq, since, reading).await;
        let learned = context.demand_model.as_deref();
        foresight = recalled.foresight(&config, learned, &read.requests, read.now_ms);
        ahead = Some(recalled);
    }
    let left = deadline.saturating_duration_since(Instant::now());
    let budget = left.mul_f64(SOLVE_SHARE);
    let decided = decide_on_a_thread(context, read, foresight, budget).await?;
    let may_claim = || {
        let held = *held.borrow();
        held.is_some_and(|now| now.epoch == lead.epoch && now.holds())
    };
    let hashed = hash_on_a_thread(&decided.snapshot);
    let claiming = Instant::now();
    let claims = Claims {
        store: &*context.store,
        region: &context.region,
        window_seq: seq,
        owner: window.owner,
        next_batch: window.window.next_batch,
        may_claim: &may_claim,
        give_up: deadline.into(),
    };
    let claimed = match claim_and_repair(claims, &decided, deadline).await {
        Ok(claimed) => claimed,
        Err(error) => {
            // decided all the same: the record tells it, though somebody else seals
            record(context, seq, &decided, BTreeSet::new(), None);
            tell::too_late(&context.region, seq, &error);
            return Err(error);
        }
    };
    let decision = claimed.repaired.as_ref().unwrap_or(decided.first());
    let now = decided.snapshot.now();
    if let Some(ahead) = &mut ahead {
        let waits = waiting_after(&decided.snapshot, &claimed.outcomes);
        ahead.decided(decision, now, |request| waits.contains(request));
    }
    let report = DecidedWindow {
        source: decided.source(),
        cause: decided.batch.is_err().then_some("solver_failed"),
        decision,
        planned_age_s: ahead
            .as_ref()
            .and_then(|ahead| ahead.planned_age_s(decision, now)),
        ahead: ahead.as_ref().map(WindowAhead::note),
        requests,
        deferred,
        outcomes: &claimed.outcomes,
        claim_lost: claimed.lost_pairs,
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
        let (region, snapshot) = (&context.region, &decided.snapshot);
        tell::sealed(region, &window.window, snapshot, &report, sealed);
        context.level.sealed(report.source);
        if let Some(ahead) = ahead {
            ahead.remember(&context.ahead);
        }
    } else if let Err(error) = &sealed {
        tell::too_late(&context.region, seq, error);
    }
    // what was claimed is claimed, whoever sealed
    let Claimed { lost, repaired, .. } = claimed;
    record(context, seq, &decided, lost, repaired.as_ref());
    sealed.map(|_| ())
}

impl Decided {
    /// What was decided before the claims.
    fn first(&self) -> &WindowDecision {
        match &self.batch {
            Ok(batch) => &batch.decision,
            Err(greedy) => greedy,
        }
    }

    fn source(&self) -> ReportSource {
        match self.batch {
            Ok(_) => ReportSource::Batch,
            Err(_) => ReportSource::Fallback,
        }
    }
}

/// A window after its claims.
struct Claimed {
    outcomes: Outcomes,
    /// Requests whose first pair was lost.
    lost: BTreeSet<RequestId>,
    /// Pairs lost, those of the repair included.
    lost_pairs: u32,
    /// The whole window after the repair, if there was one.
    repaired: Option<WindowDecision>,
}

/// Claims what was decided; what is lost is solved once more on what is left.
async fn claim_and_repair(
    mut claims: Claims<'_>,
    decided: &Decided,
    deadline: Instant,
) -> Result<Claimed, WindowError> {
    let outcomes = claims.claim(&decided.first().assignments).await?;
    let lost = lost_requests(&outcomes);
    let mut claimed = Claimed {
        lost_pairs: lost.len() as u32,
        outcomes,
        lost,
        repaired: None,
    };
    let Ok(batch) = &decided.batch else {
        return Ok(claimed);
    };
    let left = deadline.saturating_duration_since(Instant::now());
    if claimed.lost.is_empty() || left.is_zero() {
        return Ok(claimed);
    }
    let (snapshot, batch, lost) = (
        decided.snapshot.clone(),
        batch.clone(),
        claimed.lost.clone(),
    );
    let repairing = spawn_blocking(move || {
        let options = Options {
            budget: Some(Budget::wall(left.mul_f64(SOLVE_SHARE))),
            ..Options::default()
        };
        repair(&snapshot, &batch, &lost, &options)
    });
    match repairing.await.map_err(|_| WindowError::Panicked)? {
        Ok(repaired) => {
            let added = claims.claim(&repaired.added).await?;
            claimed.lost_pairs += lost_requests(&added).len() as u32;
            claimed.outcomes.extend(added);
            claimed.repaired = Some(repaired.decision);
        }
        Err(error) => tracing::error!(region = %claims.region, %error, "repair failed"),
    }
    Ok(claimed)
}

fn record(
    context: &RegionContext,
    seq: WindowSeq,
    decided: &Decided,
    lost: BTreeSet<RequestId>,
    repaired: Option<&WindowDecision>,
) {
    let Some(recorder) = &context.recorder else {
        return;
    };
    let lost: Vec<RequestId> = lost.into_iter().collect();
    recorder.window(WindowEntry {
        region: &context.region,
        window_seq: Some(seq),
        window_id: None,
        source: match decided.source() {
            ReportSource::Batch => WindowSource::Batch,
            ReportSource::Fallback | ReportSource::None => WindowSource::Fallback,
        },
        snapshot: &decided.snapshot,
        decision: decided.first(),
        claim_lost: &lost,
        repaired,
    });
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
    foresight: Foresight,
    budget: Duration,
) -> Result<Decided, WindowError> {
    let (decider, region) = (context.decider.clone(), context.region.clone());
    let decided = spawn_blocking(move || {
        let entered = Instant::now();
        let snapshot = Arc::new(window_snapshot(&region, &read).foreseeing(foresight));
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
        let mut ended = |phase| {
            times.add(phase, started.elapsed());
            started = Instant::now();
        };
        // a decider that panics has failed like any other: nothing of its work is used
        let solving = AssertUnwindSafe(|| decider.decide(&snapshot, method, left, &mut ended));
        let error = match catch_unwind(solving) {
            Ok(Ok(batch)) => {
                let batch = Ok(Arc::new(batch));
                return Decided {
                    snapshot,
                    batch,
                    times,
                };
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the decision panicked".to_owned(),
        };
        tracing::error!(%region, %error, "window decided by the greedy rule instead");
        let greedy = decide_oldest_first(&snapshot, &StraightLine::of(snapshot.config()));
        let batch = Err(greedy);
        Decided {
            snapshot,
            batch,
            times,
        }
    });
    decided.await.map_err(|_| WindowError::Panicked)
}

/// The requests of a window that wait on after its claims.
pub(super) fn waiting_after(snapshot: &WindowSnapshot, outcomes: &Outcomes) -> BTreeSet<RequestId> {
    let requests = snapshot.requests().iter();
    let ids = requests.map(|pending| &pending.request.id);
    ids.filter(|id| !matches!(outcomes.get(id), Some(PairOutcome::Claimed { .. })))
        .cloned()
        .collect()
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
