//! The dispatch tier's own windows: decided when it asks, answered the same however often it asks.
//!
//! A node begins one, claims for it, and finishes it with the answer's bytes. When that node dies,
//! another takes it over after its time and is told what was already claimed for it.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    claim::Pair,
    claim_batch::{BatchAnswer, KeptBatch, PairLoss, PairOutcome},
    due::DueKey,
    mutation::Mutation,
    outbox::Source,
    region::Region,
    request::{Fingerprint, RequestDraft, RequestRecord, RequestState},
    rules::{MAX_BATCHES_A_WINDOW, MAX_OWN_WINDOWS, MAX_PAIRS_A_BATCH},
};
use crate::domain::{
    CostMs, DriverId, DurationMs, Fence, Nonce, RequestId, StoreTime, UnixMs, WindowId,
};

/// Longest time that one node may work on an own window.
pub const MAX_OWN_WORK_MS: DurationMs = DurationMs::new(60_000);

/// How far an own window has come.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnPhase {
    /// A node works on it.
    Running {
        /// The node's number.
        runner: Nonce,
        /// When another may take it over (exclusive).
        until_ms: UnixMs,
    },
    /// It is answered.
    Done {
        /// The answer's bytes.
        result: Arc<str>,
    },
}

/// An own window as the region keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OwnWindow {
    /// The hash of the body.
    pub fingerprint: Fingerprint,
    /// How far it has come.
    pub phase: OwnPhase,
    /// Claimed for it so far, whoever worked on it.
    pub claimed: Vec<OwnClaimed>,
    /// The answers to its present runner's claim batches.
    pub(crate) batches: BTreeMap<u32, KeptBatch>,
}

/// A pair that was claimed for an own window.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OwnClaimed {
    /// The request.
    pub request_id: RequestId,
    /// The driver.
    pub driver_id: DriverId,
    /// The claim's version.
    pub fence: Fence,
    /// End of the lease as first given.
    pub lease_until_ms: UnixMs,
    /// Its length.
    pub lease_ms: DurationMs,
    /// Travel time, in milliseconds.
    pub eta: DurationMs,
    /// Cost, in milliseconds.
    pub cost: CostMs,
}

/// Begins an own window, or asks for its answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BeginOwnWindow {
    /// The caller's name of it.
    pub window_id: WindowId,
    /// The hash of the body.
    pub fingerprint: Fingerprint,
    /// Drawn once by the node that works on it; a repeat carries the same.
    pub runner: Nonce,
    /// How long the node may work before another takes over; at most [`MAX_OWN_WORK_MS`].
    pub work_ms: DurationMs,
}

/// What to do with an own window.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnBegun {
    /// Decide it. The pairs were claimed for it by a node that did not finish.
    Run {
        /// They stand: the answer must have them.
        claimed: Vec<OwnClaimed>,
    },
    /// It is answered: with these bytes.
    Done {
        /// The answer's bytes.
        result: Arc<str>,
    },
}

/// Why an own window is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum OwnRefusal {
    /// The id stands for another body.
    #[error("the window id stands for another body")]
    WindowConflict,
    /// Another node works on it.
    #[error("the window is being decided until {until_ms}")]
    WindowInProgress {
        /// When it may be taken over.
        until_ms: UnixMs,
    },
    /// Another node took it over, or it is answered, or forgotten: stop working on it.
    #[error("the window is lost")]
    WindowLost,
    /// The store lost data; no windows until then.
    #[error("the region is quarantined until {until_ms}")]
    Quarantined {
        /// When windows begin again.
        until_ms: UnixMs,
    },
    /// Ops paused the intake.
    #[error("the region is paused")]
    Paused,
    /// The region remembers as many own windows as it may.
    #[error("the region remembers as many windows as it may")]
    RegionFull,
    /// More pairs or batches than one step or window may have.
    #[error("a batch has at most 250 pairs, a window at most 64 batches")]
    TooLarge,
    /// The number of the batch was used for other pairs.
    #[error("the batch number was used for other pairs")]
    OtherPairs,
}

/// A pair of an own window. The request comes along: an unmatched one leaves no record.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OwnPair {
    /// The request.
    pub request: Arc<RequestDraft>,
    /// The driver.
    pub driver_id: DriverId,
    /// Travel time, in milliseconds.
    pub eta: DurationMs,
    /// Cost, in milliseconds.
    pub cost: CostMs,
}

/// Claims pairs of an own window, each for itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClaimOwnBatch {
    /// The window.
    pub window_id: WindowId,
    /// The node that works on it.
    pub runner: Nonce,
    /// Number of the batch; a repeat gets the first answer.
    pub batch_no: u32,
    /// The lease asked for, within the rails.
    pub lease_ms: Option<DurationMs>,
    /// At most [`MAX_PAIRS_A_BATCH`].
    pub pairs: Vec<OwnPair>,
}

/// Ends an own window with its answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FinishOwnWindow {
    /// The window.
    pub window_id: WindowId,
    /// The node that worked on it.
    pub runner: Nonce,
    /// The answer's bytes.
    pub result: Arc<str>,
}

impl ClaimOwnBatch {
    /// The hash of the pairs: tells a repeat from another batch under the same number.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_value(&self.pairs)
    }
}

impl Region {
    /// Begins an own window, answers it again, or says who is at it.
    pub(crate) fn begin_own(
        &mut self,
        begin: &BeginOwnWindow,
        now: StoreTime,
    ) -> Result<OwnBegun, OwnRefusal> {
        if let Some(until_ms) = self.quarantine(now) {
            return Err(OwnRefusal::Quarantined { until_ms });
        }
        let work_ms = begin.work_ms.clamp(DurationMs::new(1), MAX_OWN_WORK_MS);
        let running = OwnPhase::Running {
            runner: begin.runner,
            until_ms: now.ms() + work_ms,
        };
        let same_body_only = !self.has(Mutation::OwnWindowIgnoresBody);
        if let Some(window) = self.own_windows.get_mut(&begin.window_id) {
            if window.fingerprint != begin.fingerprint && same_body_only {
                return Err(OwnRefusal::WindowConflict);
            }
            match &window.phase {
                OwnPhase::Done { result } => {
                    return Ok(OwnBegun::Done {
                        result: Arc::clone(result),
                    });
                }
                OwnPhase::Running { runner, until_ms }
                    if *runner != begin.runner && now.ms() < *until_ms =>
                {
                    return Err(OwnRefusal::WindowInProgress {
                        until_ms: *until_ms,
                    });
                }
                OwnPhase::Running { runner, .. } => {
                    if *runner != begin.runner {
                        window.batches.clear();
                    }
                    window.phase = running;
                    return Ok(OwnBegun::Run {
                        claimed: window.claimed.clone(),
                    });
                }
            }
        }
        if self.rules.paused {
            return Err(OwnRefusal::Paused);
        }
        if self.own_windows.len() >= MAX_OWN_WINDOWS {
            return Err(OwnRefusal::RegionFull);
        }
        let forgotten = now.ms() + MAX_OWN_WORK_MS + self.rules.window_result_ttl_ms;
        self.due
            .set(DueKey::OwnWindow(begin.window_id.clone()), forgotten);
        self.own_windows.insert(
            begin.window_id.clone(),
            OwnWindow {
                fingerprint: begin.fingerprint,
                phase: running,
                claimed: Vec::new(),
                batches: BTreeMap::new(),
            },
        );
        Ok(OwnBegun::Run {
            claimed: Vec::new(),
        })
    }

    /// Claims pairs of an own window by the same step as the region's windows do.
    pub(crate) fn claim_own(
        &mut self,
        batch: &ClaimOwnBatch,
        now: StoreTime,
    ) -> Result<Arc<BatchAnswer>, OwnRefusal> {
        if batch.pairs.len() > MAX_PAIRS_A_BATCH {
            return Err(OwnRefusal::TooLarge);
        }
        let window = self.running_own(&batch.window_id, batch.runner, now)?;
        let pairs = batch.fingerprint();
        if let Some(first) = window.batches.get(&batch.batch_no) {
            return if first.pairs == pairs {
                Ok(Arc::clone(&first.answer))
            } else {
                Err(OwnRefusal::OtherPairs)
            };
        }
        if window.batches.len() >= MAX_BATCHES_A_WINDOW {
            return Err(OwnRefusal::TooLarge);
        }
        let mut outcomes = Vec::with_capacity(batch.pairs.len());
        let mut claimed = Vec::new();
        for pair in &batch.pairs {
            let outcome = self.claim_own_pair(&batch.window_id, pair, batch.lease_ms, now);
            if let PairOutcome::Claimed {
                fence,
                lease_until_ms,
                lease_ms,
            } = outcome
            {
                claimed.push(OwnClaimed {
                    request_id: pair.request.id.clone(),
                    driver_id: pair.driver_id.clone(),
                    fence,
                    lease_until_ms,
                    lease_ms,
                    eta: pair.eta,
                    cost: pair.cost,
                });
            }
            outcomes.push(outcome);
        }
        let answer = Arc::new(BatchAnswer { outcomes });
        if let Some(window) = self.own_windows.get_mut(&batch.window_id) {
            window.claimed.append(&mut claimed);
            let kept = KeptBatch {
                pairs,
                answer: Arc::clone(&answer),
            };
            window.batches.insert(batch.batch_no, kept);
        }
        Ok(answer)
    }

    fn claim_own_pair(
        &mut self,
        window: &WindowId,
        pair: &OwnPair,
        lease: Option<DurationMs>,
        now: StoreTime,
    ) -> PairOutcome {
        let id = &pair.request.id;
        self.touch_request(id, now);
        let before = self.requests.get(id).cloned();
        match before.as_ref().map(|record| record.state) {
            None | Some(RequestState::Released) => {}
            Some(RequestState::Pending) => return PairOutcome::Lost(PairLoss::AlreadyPending),
            Some(RequestState::Assigned) => return PairOutcome::Lost(PairLoss::AlreadyAssigned),
            Some(RequestState::Confirmed)
                if before.as_ref().is_some_and(|r| r.live().is_some()) =>
            {
                return PairOutcome::Lost(PairLoss::AlreadyAssigned);
            }
            Some(_) => return PairOutcome::Lost(PairLoss::RequestClosed),
        }
        let requested_at_ms = pair.request.requested_at_ms.unwrap_or(now.ms());
        let max_wait_ms = pair.request.max_wait_ms.unwrap_or(self.rules.max_wait_ms);
        let (claims, attempts) = before.as_ref().map_or((Vec::new(), 0), |record| {
            (record.claims.clone(), record.attempts)
        });
        // the record is written first, so that the claim finds its rider and exclusions
        self.requests.insert(
            id.clone(),
            RequestRecord {
                draft: Some(Arc::clone(&pair.request)),
                fingerprint: Some(pair.request.fingerprint()),
                requested_at_ms,
                deadline_ms: requested_at_ms + max_wait_ms,
                state: RequestState::Released,
                entered: self.last_window,
                intake: None,
                own_window: Some(window.clone()),
                attempts,
                claims,
                ended_at_ms: None,
            },
        );
        let outcome = self.claim_driver(
            &Pair {
                request: id,
                driver: &pair.driver_id,
                eta: pair.eta,
                cost: pair.cost,
                source: Source::Own,
                window_seq: None,
            },
            lease,
            now,
        );
        if matches!(outcome, PairOutcome::Lost(_)) {
            match before {
                Some(record) => self.requests.insert(id.clone(), record),
                None => self.requests.remove(id),
            };
        }
        outcome
    }

    /// Ends an own window; the first answer stands.
    pub(crate) fn finish_own(
        &mut self,
        finish: &FinishOwnWindow,
        now: StoreTime,
    ) -> Result<Arc<str>, OwnRefusal> {
        if let Some(window) = self.own_windows.get(&finish.window_id)
            && let OwnPhase::Done { result } = &window.phase
            && *result == finish.result
        {
            return Ok(Arc::clone(result));
        }
        self.running_own(&finish.window_id, finish.runner, now)?;
        if let Some(window) = self.own_windows.get_mut(&finish.window_id) {
            window.phase = OwnPhase::Done {
                result: Arc::clone(&finish.result),
            };
            window.claimed.clear();
            window.batches.clear();
        }
        let forgotten = now.ms() + self.rules.window_result_ttl_ms;
        self.due
            .set(DueKey::OwnWindow(finish.window_id.clone()), forgotten);
        Ok(Arc::clone(&finish.result))
    }

    fn running_own(
        &self,
        id: &WindowId,
        runner: Nonce,
        now: StoreTime,
    ) -> Result<&OwnWindow, OwnRefusal> {
        if let Some(until_ms) = self.quarantine(now) {
            return Err(OwnRefusal::Quarantined { until_ms });
        }
        let window = self.own_windows.get(id).ok_or(OwnRefusal::WindowLost)?;
        match window.phase {
            OwnPhase::Running {
                runner: current, ..
            } if current == runner => Ok(window),
            _ => Err(OwnRefusal::WindowLost),
        }
    }
}
