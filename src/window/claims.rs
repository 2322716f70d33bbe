//! Claiming the pairs of a window: in batches, each repeated until its outcome is known (INV-10).

use std::{collections::BTreeMap, sync::Arc};

use tokio::time::{Duration, Instant, sleep};

use crate::{
    decision::Assignment,
    domain::{CostMs, DurationMs, RegionId, RequestId, WindowSeq},
    protocol::{
        BatchAnswer, ClaimBatch, ClaimPair, Owner, PairOutcome, WindowRefusal,
        rules::MAX_PAIRS_A_BATCH,
    },
    store::{Store, StoreError},
};

/// Why the claims of a window came to no end.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClaimError {
    /// Another owner has the window, or it is sealed.
    #[error("the window was refused: {0}")]
    Refused(WindowRefusal),
    /// This node's leadership is over.
    #[error("the leadership is over")]
    LeadershipOver,
    /// The store answered for other pairs than were sent: a defect.
    #[error("the store answered for other pairs")]
    OtherPairs,
    /// The store gave no answer in time.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What became of each request's pair.
pub(super) type Outcomes = BTreeMap<RequestId, PairOutcome>;

/// Pairs of one claim batch: on Redis a script of so many takes about 3 ms, and other calls come in
/// between two of them. 2,000 requests, all repaired once, need 40 batches of the 64 allowed.
pub(super) const PAIRS_A_BATCH: usize = 100;

const _: () = assert!(PAIRS_A_BATCH <= MAX_PAIRS_A_BATCH);

/// Pause before an outcome that is not known is asked for again.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// The claims of one owner for one window.
pub(super) struct Claims<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) region: &'a RegionId,
    pub(super) window_seq: WindowSeq,
    pub(super) owner: Owner,
    /// Number of the next batch: over those that this owner has used, since a repeat would get the
    /// first answer.
    pub(super) next_batch: u32,
    /// Whether this node may still claim; asked before each batch.
    pub(super) may_claim: &'a (dyn Fn() -> bool + Sync),
    /// When to give up asking for an unknown outcome.
    pub(super) give_up: Instant,
}

impl Claims<'_> {
    /// Claims `pairs`; losing some is a normal answer.
    pub(super) async fn claim(&mut self, pairs: &[Assignment]) -> Result<Outcomes, ClaimError> {
        let mut outcomes = Outcomes::new();
        for chunk in pairs.chunks(PAIRS_A_BATCH) {
            if !(self.may_claim)() {
                return Err(ClaimError::LeadershipOver);
            }
            let batch = ClaimBatch {
                window_seq: self.window_seq,
                owner: self.owner,
                batch_no: self.next_batch,
                pairs: chunk.iter().map(claim_pair).collect(),
            };
            self.next_batch += 1;
            let answer = self.known_answer(batch).await?;
            if answer.outcomes.len() != chunk.len() {
                return Err(ClaimError::OtherPairs);
            }
            let ids = chunk.iter().map(|pair| pair.request_id.clone());
            outcomes.extend(ids.zip(answer.outcomes.iter().copied()));
        }
        Ok(outcomes)
    }

    /// Sends a batch until its outcome is known: the repeat gets the first answer.
    async fn known_answer(&self, batch: ClaimBatch) -> Result<Arc<BatchAnswer>, ClaimError> {
        loop {
            match self.store.claim_batch(self.region, batch.clone()).await {
                Ok(answer) => return answer.map_err(ClaimError::Refused),
                Err(StoreError::OutcomeUnknown(_) | StoreError::Unavailable(_))
                    if Instant::now() < self.give_up =>
                {
                    sleep(ASK_AGAIN).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn claim_pair(pair: &Assignment) -> ClaimPair {
    ClaimPair {
        request_id: pair.request_id.clone(),
        driver_id: pair.driver_id.clone(),
        eta: DurationMs::from_seconds(pair.eta_s),
        cost: CostMs::from_seconds(pair.cost_s),
    }
}
