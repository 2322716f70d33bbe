//! The dispatch tier's own windows: decided when it asks, on any node, answered with the same bytes
//! however often it asks.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use kheya_solver::{Budget, Method, Options};
use tokio::{task::spawn_blocking, time::Instant};

use super::{
    Node,
    claims::{Outcomes, PAIRS_A_BATCH},
    leader::lost_requests,
    own_answer::{OwnDecided, own_answer},
    own_constraints::{standing, taking_part},
    snapshot,
};
use crate::{
    config::RegionConfig,
    decision::{
        Assignment, Batch, PendingRequest, SnapshotEdge, SnapshotError, WindowDecision,
        WindowSnapshot, check_constraints, decide_oldest_first, repair,
    },
    domain::{CostMs, Draw, DriverId, DurationMs, Nonce, RegionId, RequestId},
    eta::StraightLine,
    http::{OwnWindowCall, OwnWindowError, model::entries::RejectedEntry, snapshot_error},
    leadership::draw_nonce,
    protocol::{
        BeginOwnWindow, ClaimOwnBatch, EntryCode, FinishOwnWindow, OwnBegun, OwnClaimed, OwnPair,
        OwnRefusal, Pings, RegionRules, RegionView, RequestDraft, RequestState, RequestView,
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
        let mut strangers = strangers(&call);
        strangers.extend(check_constraints(&call.constraints));
        if !strangers.is_empty() {
            return Err(invalid(&strangers));
        }
        let store = &*self.options.store;
        let runner = draw_nonce();
        let asked_ms = match call.budget_ms {
            Some(asked) => asked,
            None => self.region_budget(region).await?,
        };
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

impl Node {
    /// The region's own budget; the default of a region that is still to come.
    async fn region_budget(&self, region: &RegionId) -> Result<DurationMs, OwnWindowError> {
        match self.options.store.overview(region).await {
            Ok(view) => Ok(view.rules.budget_ms),
            Err(StoreError::UnknownRegion) => Ok(RegionRules::default().budget_ms),
            Err(error) => Err(error.into()),
        }
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
    left: Vec<(RequestId, &'static str)>,
}

impl OwnWork<'_> {
    async fn run(&mut self, already: Vec<OwnClaimed>) -> Result<Arc<str>, OwnWindowError> {
        let store = &*self.node.options.store;
        self.apply_pings().await?;
        let overview = store.overview(self.region).await?;
        let sorted = self.sort_requests(&overview, &already).await?;
        let config = snapshot::region_config(self.region, &overview.document);
        let budget_ms = self
            .call
            .budget_ms
            .unwrap_or(config.budget_ms)
            .min(config.window_ms);
        let budget = Duration::from_millis(budget_ms.get().max(1) as u64);
        let deadline = Instant::now() + budget;
        let snapshot = self.snapshot(&overview, config, &sorted, &already).await?;
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
                let left = left.mul_f64(SOLVE_SHARE);
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
        let answer = own_answer(OwnDecided {
            window_id: &self.call.window_id,
            overview: &overview,
            snapshot: &snapshot,
            decision: &last,
            outcomes: &outcomes,
            left: sorted.left,
            already: &already,
            rejected: std::mem::take(&mut self.rejected),
        });
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
        lost: BTreeSet<RequestId>,
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
        let places = &self.call.driver_places;
        self.rejected.extend(answer.rejected.iter().map(|rejected| {
            let place = places.get(rejected.index).copied();
            let place = place.unwrap_or(rejected.index);
            not_taken(place, rejected.id.to_string(), rejected.code)
        }));
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
        let mut seen = BTreeSet::new();
        for (index, (draft, known)) in self.call.requests.iter().zip(known).enumerate() {
            let place = self
                .call
                .request_places
                .get(index)
                .copied()
                .unwrap_or(index);
            let refused = if seen.insert(&draft.id) {
                times_refused(draft, overview)
            } else {
                Some(EntryCode::DuplicateInBatch)
            };
            if let Some(code) = refused {
                let id = draft.id.to_string();
                self.rejected.push(not_taken(place, id, code));
                continue;
            }
            if already.iter().any(|claimed| claimed.request_id == draft.id) {
                continue;
            }
            match known.as_ref().and_then(known_elsewhere) {
                Some(reason) => sorted.left.push((draft.id.clone(), reason)),
                None => {
                    sorted
                        .taking_part
                        .insert(draft.id.clone(), Arc::new(draft.clone()));
                }
            }
        }
        Ok(sorted)
    }

    /// What the window is decided on, built on a thread that may block: a call may bring hundreds
    /// of thousands of edges.
    async fn snapshot(
        &self,
        overview: &RegionView,
        config: RegionConfig,
        sorted: &Sorted,
        already: &[OwnClaimed],
    ) -> Result<Arc<WindowSnapshot>, OwnWindowError> {
        let supply = self.node.options.store.supply(self.region).await?;
        let asked = self.call.drivers.as_ref();
        let asked: Option<BTreeSet<DriverId>> =
            asked.map(|pings| pings.iter().map(|ping| ping.id.clone()).collect());
        let (drafts, edges) = (sorted.taking_part.clone(), self.call.edges.clone());
        let constraints = standing(&self.call.constraints, already);
        let now = overview.now_ms;
        let seed = Draw::new(0, "own window")
            .text(self.call.window_id.as_str())
            .bits();
        let built = spawn_blocking(move || {
            let requests = drafts.values().map(|draft| PendingRequest {
                request: Arc::new(snapshot::request(
                    draft,
                    draft.requested_at_ms.unwrap_or(now),
                )),
                left_over: 0,
            });
            let takes_part = |id: &DriverId| asked.as_ref().is_none_or(|asked| asked.contains(id));
            let views = supply.drivers.iter().filter(|view| takes_part(&view.id));
            let drivers: Vec<_> = views.map(snapshot::driver).collect();
            // edges to requests or drivers that take no part any more are of no use
            let known: BTreeSet<&DriverId> = drivers.iter().map(|driver| &driver.id).collect();
            let edges = edges.map(|edges| {
                let of_use = |edge: &SnapshotEdge| {
                    drafts.contains_key(&edge.request_id) && known.contains(&edge.driver_id)
                };
                edges.into_iter().filter(of_use).collect()
            });
            let constraints = taking_part(constraints, &drafts, &known);
            drop(known);
            WindowSnapshot::new(now, config, seed, requests.collect(), drivers, edges)
                .and_then(|snapshot| snapshot.with_constraints(constraints))
        });
        let built = built.await.map_err(|error| failed(&error))?;
        built.map(Arc::new).map_err(|errors| invalid(&errors))
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
}

/// A request or driver that was not taken in, as the answer tells it.
fn not_taken(index: usize, id: String, code: EntryCode) -> RejectedEntry {
    RejectedEntry {
        index,
        id: Some(id),
        code: code.code(),
        detail: code.detail().to_owned(),
    }
}

/// Edges and constraints that name a request that was not sent; rejected requests were sent too.
fn strangers(call: &OwnWindowCall) -> Vec<SnapshotError> {
    let sent: BTreeSet<&str> = call
        .requests
        .iter()
        .map(|draft| draft.id.as_str())
        .chain(call.rejected.iter().filter_map(|entry| entry.id.as_deref()))
        .collect();
    let edges = call.edges.iter().flatten().enumerate();
    let edges = edges.map(|(i, edge)| (format!("edges[{i}].request_id"), &edge.request_id));
    let members = call
        .constraints
        .iter()
        .enumerate()
        .flat_map(|(i, constraint)| {
            let ids = constraint.requests.iter().flatten().enumerate();
            ids.map(move |(place, id)| (format!("constraints[{i}].requests[{place}]"), id))
        });
    edges
        .chain(members)
        .filter(|(_, id)| !sent.contains(id.as_str()))
        .map(|(path, id)| SnapshotError::UnknownId {
            path,
            kind: "request",
            id: id.to_string(),
        })
        .collect()
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
    async fn claim(&mut self, pairs: &[Assignment]) -> Result<Outcomes, OwnWindowError> {
        let mut outcomes = Outcomes::new();
        for chunk in pairs.chunks(PAIRS_A_BATCH) {
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
