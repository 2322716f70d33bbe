//! The dispatch tier's own windows: decided when it asks, on any node, answered with the same bytes
//! however often it asks.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kheya_solver::{Budget, Method, Options};
use serde::Serialize;
use tokio::{task::spawn_blocking, time::Instant};

use super::{Node, leader::lost_requests, snapshot};
use crate::{
    config::RegionConfig,
    decision::{
        Assignment, Batch, DriverSnapshot, Exclusion, PendingRequest, SnapshotEdge, SnapshotError,
        WindowDecision, WindowSnapshot, decide_oldest_first, repair,
    },
    domain::{
        CostMs, DriverId, DurationMs, Fence, Generation, Nonce, RegionId, RequestId, UnixMs,
        WindowId,
    },
    eta::StraightLine,
    http::{OwnWindowCall, OwnWindowError, model::entries::RejectedEntry, snapshot_error},
    leadership::draw_nonce,
    protocol::{
        BeginOwnWindow, ClaimOwnBatch, EntryCode, FinishOwnWindow, OwnBegun, OwnClaimed, OwnPair,
        OwnRefusal, PairOutcome, Pings, RegionView, RequestDraft, RequestState, RequestView,
        rules::MAX_PAIRS_A_BATCH,
    },
    record::{WindowEntry, WindowSource},
    store::{Store, StoreError},
};

/// Time beyond the budget that claims and answer may take before another node takes over.
const WORK_BEYOND_BUDGET: DurationMs = DurationMs::new(2_000);

/// Pause before asking again for a window that another call decides.
const ASK_AGAIN: Duration = Duration::from_millis(10);

/// Share of the budget that the first solve may take.
const SOLVE_SHARE: f64 = 0.6;

#[derive(Serialize)]
struct Answer<'a> {
    window_id: &'a WindowId,
    generation: Generation,
    source: &'static str,
    assignments: Vec<AnswerPair>,
    unmatched: Vec<AnswerLeft>,
    excluded: &'a [Exclusion],
    rejected: Vec<RejectedEntry>,
    total_cost_s: f64,
    status: &'static str,
    method: &'static str,
    gap: f64,
    gain_vs_greedy_s: Option<f64>,
    gain_vs_greedy_edge_s: Option<f64>,
    decided_at_ms: UnixMs,
}

#[derive(Serialize)]
struct AnswerPair {
    request_id: RequestId,
    driver_id: DriverId,
    fence: Fence,
    lease_until_ms: UnixMs,
    lease_ms: DurationMs,
    eta_s: f64,
    cost_s: f64,
}

#[derive(Serialize)]
struct AnswerLeft {
    request_id: RequestId,
    reason: &'static str,
}

impl From<&OwnClaimed> for AnswerPair {
    fn from(claimed: &OwnClaimed) -> Self {
        Self {
            request_id: claimed.request_id.clone(),
            driver_id: claimed.driver_id.clone(),
            fence: claimed.fence,
            lease_until_ms: claimed.lease_until_ms,
            lease_ms: claimed.lease_ms,
            eta_s: claimed.eta.as_seconds(),
            cost_s: claimed.cost.as_seconds(),
        }
    }
}

impl Node {
    /// Decides the dispatch tier's own window, or gives the answer it got before.
    ///
    /// # Errors
    /// [`OwnWindowError`].
    pub async fn solve_own_window(
        &self,
        region: &RegionId,
        call: OwnWindowCall,
    ) -> Result<Arc<str>, OwnWindowError> {
        let store = &*self.options.store;
        let runner = draw_nonce();
        let asked_ms = call.budget_ms.unwrap_or(RegionConfig::default().budget_ms);
        let begin = BeginOwnWindow {
            window_id: call.window_id.clone(),
            fingerprint: call.fingerprint,
            runner,
            work_ms: asked_ms + WORK_BEYOND_BUDGET,
        };
        let claimed = match begin_or_wait(store, region, begin, asked_ms).await? {
            OwnBegun::Done { result } => return Ok(result),
            OwnBegun::Run { claimed } => claimed,
        };
        let mut work = OwnWork {
            node: self,
            region,
            runner,
            rejected: call.rejected.clone(),
            call,
        };
        work.run(claimed).await
    }
}

/// Begins the window; while another call decides it, waits as long as the budget.
async fn begin_or_wait(
    store: &dyn Store,
    region: &RegionId,
    begin: BeginOwnWindow,
    wait: DurationMs,
) -> Result<OwnBegun, OwnWindowError> {
    let give_up = Instant::now() + Duration::from_millis(wait.get().max(0) as u64);
    loop {
        match store.begin_own(region, begin.clone()).await {
            Ok(Err(OwnRefusal::WindowInProgress { .. })) | Err(StoreError::OutcomeUnknown(_))
                if Instant::now() < give_up =>
            {
                tokio::time::sleep(ASK_AGAIN).await;
            }
            answer => return Ok(answer??),
        }
    }
}

/// The work on one own window.
struct OwnWork<'a> {
    node: &'a Node,
    region: &'a RegionId,
    runner: Nonce,
    call: OwnWindowCall,
    rejected: Vec<RejectedEntry>,
}

/// Requests that take part, and those that cannot.
struct Sorted {
    taking_part: BTreeMap<RequestId, Arc<RequestDraft>>,
    left: Vec<AnswerLeft>,
}

impl OwnWork<'_> {
    async fn run(&mut self, already: Vec<OwnClaimed>) -> Result<Arc<str>, OwnWindowError> {
        let store = &*self.node.options.store;
        self.apply_pings().await?;
        let overview = store.overview(self.region).await?;
        let sorted = self.sort_requests(&overview, &already).await?;
        let drivers = self.drivers().await?;
        let config = snapshot::region_config(self.region, &overview.document);
        let budget_ms = self
            .call
            .budget_ms
            .unwrap_or(config.budget_ms)
            .min(config.window_ms);
        let budget = Duration::from_millis(budget_ms.get().max(1) as u64);
        let deadline = Instant::now() + budget;
        let snapshot = Arc::new(self.snapshot(&overview, config, &sorted, drivers)?);
        let (decision, batch) = self
            .decide(snapshot.clone(), budget.mul_f64(SOLVE_SHARE))
            .await?;

        let mut claims = OwnClaims {
            work: self,
            drafts: &sorted.taking_part,
            next_batch: 0,
        };
        let mut outcomes = claims.claim(&decision.assignments).await?;
        let lost = lost_requests(&outcomes);
        let repaired = match batch {
            Some(batch) if !lost.is_empty() => {
                let left = deadline.saturating_duration_since(Instant::now());
                let (snapshot, lost) = (snapshot.clone(), lost.clone());
                let again = spawn_blocking(move || {
                    let options = Options {
                        budget: Some(Budget::wall(left)),
                        ..Options::default()
                    };
                    repair(&snapshot, &batch, &lost, &options)
                });
                again.await.map_err(|error| failed(&error))?.ok()
            }
            _ => None,
        };
        if let Some(repaired) = &repaired {
            outcomes.extend(claims.claim(&repaired.added).await?);
        }
        let repaired = repaired.map(|repaired| repaired.decision);
        self.record(&snapshot, &decision, lost, repaired.as_ref());
        let last = repaired.unwrap_or(decision);
        let answer = self.answer(&overview, &last, &outcomes, sorted, &already);
        let result: Arc<str> = serde_json::to_string(&answer)
            .map_err(|error| failed(&error))?
            .into();
        let finish = FinishOwnWindow {
            window_id: self.call.window_id.clone(),
            runner: self.runner,
            result,
        };
        // the repeat of an unknown outcome gets the first answer
        match store.finish_own(self.region, finish.clone()).await {
            Err(StoreError::OutcomeUnknown(_)) => {
                Ok(store.finish_own(self.region, finish).await??)
            }
            finished => Ok(finished??),
        }
    }

    fn record(
        &self,
        snapshot: &WindowSnapshot,
        decision: &WindowDecision,
        lost: std::collections::BTreeSet<RequestId>,
        repaired: Option<&WindowDecision>,
    ) {
        let Some(recorder) = &self.node.options.recorder else {
            return;
        };
        let lost: Vec<RequestId> = lost.into_iter().collect();
        recorder.window(WindowEntry {
            region: self.region,
            window_seq: None,
            window_id: Some(&self.call.window_id),
            source: WindowSource::Own,
            snapshot,
            decision,
            claim_lost: &lost,
            repaired,
        });
    }

    /// The drivers that were sent are pings first.
    async fn apply_pings(&mut self) -> Result<(), OwnWindowError> {
        let Some(pings) = &self.call.drivers else {
            return Ok(());
        };
        let pings = Pings {
            pings: pings.clone(),
        };
        let answer = self.node.options.store.ping(self.region, pings).await?;
        self.rejected.extend(
            answer
                .rejected
                .iter()
                .map(|rejected| not_taken(rejected.index, rejected.id.to_string(), rejected.code)),
        );
        Ok(())
    }

    /// Sorts out the requests that are pending or assigned elsewhere, ended, from the future or too
    /// old; those claimed by a node that did not finish stand already.
    async fn sort_requests(
        &mut self,
        overview: &RegionView,
        already: &[OwnClaimed],
    ) -> Result<Sorted, OwnWindowError> {
        let ids: Vec<RequestId> = self
            .call
            .requests
            .iter()
            .map(|draft| draft.id.clone())
            .collect();
        let known = self
            .node
            .options
            .store
            .requests_by_id(self.region, ids)
            .await?;
        let mut sorted = Sorted {
            taking_part: BTreeMap::new(),
            left: Vec::new(),
        };
        for (index, (draft, known)) in self.call.requests.iter().zip(known).enumerate() {
            if already.iter().any(|claimed| claimed.request_id == draft.id) {
                continue;
            }
            if let Some(code) = times_refused(draft, overview) {
                self.rejected
                    .push(not_taken(index, draft.id.to_string(), code));
                continue;
            }
            match known.as_ref().and_then(known_elsewhere) {
                Some(reason) => sorted.left.push(AnswerLeft {
                    request_id: draft.id.clone(),
                    reason,
                }),
                None => {
                    sorted
                        .taking_part
                        .insert(draft.id.clone(), Arc::new(draft.clone()));
                }
            }
        }
        Ok(sorted)
    }

    async fn drivers(&self) -> Result<Vec<Arc<DriverSnapshot>>, OwnWindowError> {
        let supply = self.node.options.store.supply(self.region).await?;
        let asked: Option<std::collections::BTreeSet<&DriverId>> = self
            .call
            .drivers
            .as_ref()
            .map(|pings| pings.iter().map(|ping| &ping.id).collect());
        let views = supply.drivers.iter();
        let views =
            views.filter(|view| asked.as_ref().is_none_or(|asked| asked.contains(&view.id)));
        Ok(views.map(snapshot::driver).collect())
    }

    fn snapshot(
        &self,
        overview: &RegionView,
        config: RegionConfig,
        sorted: &Sorted,
        drivers: Vec<Arc<DriverSnapshot>>,
    ) -> Result<WindowSnapshot, OwnWindowError> {
        let requests = sorted.taking_part.values().map(|draft| {
            let requested_at_ms = draft.requested_at_ms.unwrap_or(overview.now_ms);
            PendingRequest {
                request: Arc::new(snapshot::request(draft, requested_at_ms)),
                left_over: 0,
            }
        });
        // edges to requests that take no part any more are of no use
        let edges = self.call.edges.as_ref().map(|edges| {
            let takes_part = |edge: &&SnapshotEdge| {
                sorted.taking_part.contains_key(&edge.request_id)
                    && drivers.iter().any(|driver| driver.id == edge.driver_id)
            };
            edges.iter().filter(takes_part).cloned().collect()
        });
        let seed = crate::domain::Draw::new(0, "own window")
            .text(self.call.window_id.as_str())
            .bits();
        WindowSnapshot::new(
            overview.now_ms,
            config,
            seed,
            requests.collect(),
            drivers,
            edges,
        )
        .map_err(|errors| invalid(&errors))
    }

    /// The batch decision; the greedy one where it fails.
    async fn decide(
        &self,
        snapshot: Arc<WindowSnapshot>,
        budget: Duration,
    ) -> Result<(WindowDecision, Option<Arc<Batch>>), OwnWindowError> {
        let decider = self.node.options.decider.clone();
        let region = self.region.clone();
        let decided = spawn_blocking(move || {
            match decider.decide(&snapshot, Method::Auto, budget, &mut |_| ()) {
                Ok(batch) => (batch.decision.clone(), Some(Arc::new(batch))),
                Err(error) => {
                    tracing::error!(%region, %error, "own window decided by the greedy rule instead");
                    (
                        decide_oldest_first(&snapshot, &StraightLine::of(snapshot.config())),
                        None,
                    )
                }
            }
        });
        decided.await.map_err(|error| failed(&error))
    }

    fn answer<'b>(
        &'b mut self,
        overview: &RegionView,
        decision: &'b WindowDecision,
        outcomes: &super::claims::Outcomes,
        sorted: Sorted,
        already: &[OwnClaimed],
    ) -> Answer<'b> {
        let mut assignments: Vec<AnswerPair> = already.iter().map(AnswerPair::from).collect();
        let mut unmatched = sorted.left;
        for pair in &decision.assignments {
            match outcomes.get(&pair.request_id) {
                Some(&PairOutcome::Claimed {
                    fence,
                    lease_until_ms,
                    lease_ms,
                }) => {
                    assignments.push(AnswerPair {
                        request_id: pair.request_id.clone(),
                        driver_id: pair.driver_id.clone(),
                        fence,
                        lease_until_ms,
                        lease_ms,
                        eta_s: pair.eta_s,
                        cost_s: pair.cost_s,
                    });
                }
                _ => unmatched.push(AnswerLeft {
                    request_id: pair.request_id.clone(),
                    reason: "claim_lost",
                }),
            }
        }
        let left = decision.unmatched.iter();
        unmatched.extend(left.map(|left| AnswerLeft {
            request_id: left.request_id.clone(),
            reason: left.reason.name(),
        }));
        let facts = decision.solve.as_ref();
        Answer {
            window_id: &self.call.window_id,
            generation: overview.generation,
            source: if facts.is_some() { "own" } else { "fallback" },
            assignments,
            unmatched,
            excluded: &decision.excluded,
            rejected: std::mem::take(&mut self.rejected),
            total_cost_s: decision.objective.as_seconds(),
            status: facts.map_or("feasible", |facts| facts.status.name()),
            method: facts.map_or("greedy", |facts| facts.method.name()),
            gap: facts.map_or(0.0, |facts| facts.gap),
            gain_vs_greedy_s: facts.map(|facts| facts.gain_vs_greedy.as_seconds()),
            gain_vs_greedy_edge_s: facts.map(|facts| facts.gain_vs_greedy_edge.as_seconds()),
            decided_at_ms: overview.now_ms,
        }
    }
}

/// A request or driver that was not taken in, as the answer tells it.
fn not_taken(index: usize, id: String, code: EntryCode) -> RejectedEntry {
    RejectedEntry {
        index,
        id: Some(id),
        code: code.name(),
        detail: code.detail().to_owned(),
    }
}

/// A defect of ours, as the port tells it.
fn failed(error: &impl ToString) -> OwnWindowError {
    OwnWindowError::Failed(error.to_string().into())
}

/// What does not fit together, field by field.
fn invalid(errors: &[SnapshotError]) -> OwnWindowError {
    OwnWindowError::Invalid(errors.iter().map(snapshot_error).collect())
}

/// Why a request's own time keeps it out.
fn times_refused(draft: &RequestDraft, overview: &RegionView) -> Option<EntryCode> {
    let requested_at_ms = draft.requested_at_ms?;
    let longest = draft.max_wait_ms.unwrap_or(overview.rules.max_wait_ms);
    if requested_at_ms - overview.now_ms > overview.rules.max_clock_skew_ms {
        Some(EntryCode::RequestedAtInFuture)
    } else if overview.now_ms - requested_at_ms > longest {
        Some(EntryCode::AlreadyExpired)
    } else {
        None
    }
}

/// Why a request that the region knows takes no part.
fn known_elsewhere(known: &RequestView) -> Option<&'static str> {
    match known.state {
        RequestState::Pending => Some("already_pending"),
        RequestState::Assigned => Some("already_assigned"),
        RequestState::Confirmed if known.ended_at_ms.is_none() => Some("already_assigned"),
        RequestState::Confirmed | RequestState::Cancelled | RequestState::Expired => {
            Some("request_closed")
        }
        RequestState::Released => None,
    }
}

/// The claims of an own window.
struct OwnClaims<'a> {
    work: &'a OwnWork<'a>,
    drafts: &'a BTreeMap<RequestId, Arc<RequestDraft>>,
    next_batch: u32,
}

impl OwnClaims<'_> {
    async fn claim(
        &mut self,
        pairs: &[Assignment],
    ) -> Result<super::claims::Outcomes, OwnWindowError> {
        let mut outcomes = super::claims::Outcomes::new();
        for chunk in pairs.chunks(MAX_PAIRS_A_BATCH) {
            let batch = ClaimOwnBatch {
                window_id: self.work.call.window_id.clone(),
                runner: self.work.runner,
                batch_no: self.next_batch,
                lease_ms: self.work.call.lease_ms,
                pairs: chunk
                    .iter()
                    .filter_map(|pair| self.own_pair(pair))
                    .collect(),
            };
            self.next_batch += 1;
            let ids: Vec<RequestId> = batch
                .pairs
                .iter()
                .map(|pair| pair.request.id.clone())
                .collect();
            let (store, region) = (&*self.work.node.options.store, self.work.region);
            let answer = match store.claim_own(region, batch.clone()).await {
                Err(StoreError::OutcomeUnknown(_)) => store.claim_own(region, batch).await,
                answer => answer,
            }??;
            outcomes.extend(ids.into_iter().zip(answer.outcomes.iter().copied()));
        }
        Ok(outcomes)
    }

    fn own_pair(&self, pair: &Assignment) -> Option<OwnPair> {
        Some(OwnPair {
            request: self.drafts.get(&pair.request_id)?.clone(),
            driver_id: pair.driver_id.clone(),
            eta: DurationMs::from_seconds(pair.eta_s),
            cost: CostMs::from_seconds(pair.cost_s),
        })
    }
}
