//! Claim batches: the pairs of a window's decision, claimed each for itself in one step.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    claim::{ClaimPhase, Pair},
    mutation::Mutation,
    outbox::Source,
    region::Region,
    request::{Fingerprint, RequestState},
    rules::{MAX_BATCHES_A_WINDOW, MAX_PAIRS_A_BATCH},
    window::{Holder, Owner, WindowRefusal},
};
use crate::domain::{CostMs, DriverId, DurationMs, Fence, RequestId, StoreTime, UnixMs, WindowSeq};

/// A pair to claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClaimPair {
    /// The request.
    pub request_id: RequestId,
    /// The driver.
    pub driver_id: DriverId,
    /// Travel time, in milliseconds.
    pub eta: DurationMs,
    /// Cost, in milliseconds.
    pub cost: CostMs,
}

/// Claims pairs of a window, each for itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClaimBatch {
    /// The window.
    pub window_seq: WindowSeq,
    /// Its owner.
    pub owner: Owner,
    /// Number of the batch within the owner's work; a repeat gets the first answer.
    pub batch_no: u32,
    /// At most [`MAX_PAIRS_A_BATCH`].
    pub pairs: Vec<ClaimPair>,
}

/// What became of a pair. Losing is a normal answer (INV-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairOutcome {
    /// The driver is held for the request.
    Claimed {
        /// The claim's version.
        fence: Fence,
        /// End of the lease.
        lease_until_ms: UnixMs,
        /// Its length.
        lease_ms: DurationMs,
    },
    /// It is not.
    Lost(PairLoss),
}

/// Why a pair was not claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairLoss {
    /// The driver is held for another request.
    DriverClaimed,
    /// The driver's record is gone.
    DriverUnknown,
    /// The driver is offline, busy or unreachable.
    DriverNotAvailable,
    /// The driver is kept apart from the request or its rider.
    Cooldown,
    /// The request named this driver as one that will not do.
    Excluded,
    /// The request is not known.
    RequestUnknown,
    /// Own window: the request is pending in the region.
    AlreadyPending,
    /// The request has a driver.
    AlreadyAssigned,
    /// The request was cancelled, or expired, or has ended otherwise.
    RequestClosed,
    /// The store refused to break an invariant; it is counted.
    Broken,
}

/// What became of the pairs of a batch, in the order sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BatchAnswer {
    /// One for each pair.
    pub outcomes: Vec<PairOutcome>,
}

/// An answered batch, kept so that its repeat gets the first answer, and another batch under its
/// number none.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct KeptBatch {
    /// The hash of the pairs.
    pub(crate) pairs: Fingerprint,
    /// What was answered.
    pub(crate) answer: Arc<BatchAnswer>,
}

impl ClaimBatch {
    /// The hash of the pairs: tells a repeat from another batch under the same number.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_value(&self.pairs)
    }
}

impl Region {
    /// Claims pairs for a window, each for itself, all in one step.
    pub(crate) fn claim_batch(
        &mut self,
        batch: &ClaimBatch,
        now: StoreTime,
    ) -> Result<Arc<BatchAnswer>, WindowRefusal> {
        if batch.pairs.len() > MAX_PAIRS_A_BATCH {
            return Err(WindowRefusal::TooLarge);
        }
        let window = self.owned(batch.window_seq, batch.owner, now)?;
        let pairs = batch.fingerprint();
        if let Some(first) = window.batches.get(&batch.batch_no)
            && !self.has(Mutation::RepeatBatchRuns)
        {
            return if first.pairs == pairs {
                Ok(Arc::clone(&first.answer))
            } else {
                Err(WindowRefusal::OtherPairs)
            };
        }
        if window.batches.len() >= MAX_BATCHES_A_WINDOW {
            return Err(WindowRefusal::TooLarge);
        }
        let source = match batch.owner.holder {
            Holder::Leader { .. } => Source::Batch,
            Holder::Fallback { .. } => Source::Fallback,
        };
        let mut outcomes = Vec::with_capacity(batch.pairs.len());
        for pair in &batch.pairs {
            let pair = Pair {
                request: &pair.request_id,
                driver: &pair.driver_id,
                eta: pair.eta,
                cost: pair.cost,
                source,
                window_seq: Some(batch.window_seq),
            };
            outcomes.push(self.claim_pair(&pair, None, now));
        }
        let claimed = outcomes
            .iter()
            .filter(|outcome| matches!(outcome, PairOutcome::Claimed { .. }))
            .count();
        let answer = Arc::new(BatchAnswer { outcomes });
        if let Some(window) = self.windows.get_mut(&batch.window_seq) {
            window.claimed += claimed as u32;
            window.next_batch = window.next_batch.max(batch.batch_no.saturating_add(1));
            let kept = KeptBatch {
                pairs,
                answer: Arc::clone(&answer),
            };
            window.batches.insert(batch.batch_no, kept);
        }
        Ok(answer)
    }

    /// Claims a pair whose request is pending in the region.
    fn claim_pair(
        &mut self,
        pair: &Pair<'_>,
        lease: Option<DurationMs>,
        now: StoreTime,
    ) -> PairOutcome {
        self.touch_request(pair.request, now);
        let loss = match self.requests.get(pair.request).map(|record| record.state) {
            None => Some(PairLoss::RequestUnknown),
            Some(RequestState::Pending) => None,
            Some(RequestState::Assigned | RequestState::Confirmed) => {
                (!self.has(Mutation::RequestClaimedTwice)).then_some(PairLoss::AlreadyAssigned)
            }
            Some(_) => Some(PairLoss::RequestClosed),
        };
        if let Some(loss) = loss {
            return PairOutcome::Lost(loss);
        }
        self.claim_driver(pair, lease, now)
    }

    /// Claims a driver for a request that may have one.
    pub(crate) fn claim_driver(
        &mut self,
        pair: &Pair<'_>,
        lease: Option<DurationMs>,
        now: StoreTime,
    ) -> PairOutcome {
        self.touch_driver(pair.driver, now);
        if let Some(loss) = self.driver_loss(pair, now.ms()) {
            return PairOutcome::Lost(loss);
        }
        let phase = self.offer(lease, now);
        let ClaimPhase::Offered {
            lease_until_ms,
            lease_ms,
        } = phase
        else {
            return PairOutcome::Lost(PairLoss::Broken);
        };
        match self.hold(pair, phase, now) {
            Some(fence) => PairOutcome::Claimed {
                fence,
                lease_until_ms,
                lease_ms,
            },
            None => PairOutcome::Lost(PairLoss::Broken),
        }
    }

    fn driver_loss(&self, pair: &Pair<'_>, now: UnixMs) -> Option<PairLoss> {
        let Some(driver) = self.drivers.get(pair.driver) else {
            return Some(PairLoss::DriverUnknown);
        };
        if driver.claim.is_some() && !self.has(Mutation::DriverClaimedTwice) {
            return Some(PairLoss::DriverClaimed);
        }
        if !driver.is_ready() {
            return Some(PairLoss::DriverNotAvailable);
        }
        let request = self.requests.get(pair.request);
        let rider = request.and_then(|record| record.rider());
        if driver.cools_down(pair.request, rider, now) && !self.has(Mutation::CooldownIgnored) {
            return Some(PairLoss::Cooldown);
        }
        let excluded = request
            .and_then(|record| record.draft.as_ref())
            .is_some_and(|draft| draft.exclude_driver_ids.contains(pair.driver));
        excluded.then_some(PairLoss::Excluded)
    }
}
