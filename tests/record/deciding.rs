//! The window loop's part in a test: take, decide, claim, repair, record, seal.

use std::{collections::BTreeSet, time::Duration};

use kheya::{
    decision::{Batch, WindowDecision, WindowSnapshot, decide_batch, decide_oldest_first, repair},
    domain::{CostMs, DurationMs, Fence, NodeId, Nonce, RequestId, WindowSeq},
    eta::StraightLine,
    protocol::{
        AcquireLeadership, ClaimBatch, ClaimKey, ClaimPair, Owner, PairOutcome, RemoveDriver,
        ReportBody, ReportSource, Seal, TakeWindow, Taker,
    },
    record::{WindowEntry, WindowSource},
};
use kheya_solver::{Budget, Method, Options};

use super::{city::City, frozen::frozen};

impl City {
    pub(crate) async fn decide(&mut self, seq: WindowSeq) {
        let region = self.region.clone();
        let nonce = Nonce::new(1_000 + self.step);
        let lead = AcquireLeadership {
            node: NodeId::new("node:1").unwrap(),
            nonce,
            lease_ms: DurationMs::new(60_000),
        };
        if let Ok(leads) = self.store.acquire(&region, lead).await.unwrap() {
            self.taker = Taker::Leader {
                epoch: leads.epoch,
                nonce,
            };
        }
        let take = TakeWindow {
            window_seq: seq,
            taker: self.taker,
        };
        let taken = self
            .store
            .take_window(&region, take)
            .await
            .unwrap()
            .unwrap();
        let read = self.store.snapshot(&region, seq).await.unwrap().unwrap();
        let snapshot = frozen(&read, self.seed);
        let eta = StraightLine::of(snapshot.config());
        let kind = self.step % 8;
        let mut claim_no = 0;
        if kind == 7 {
            let decision = decide_oldest_first(&snapshot, &eta);
            let lost = self.claim(seq, taken.owner, &decision, &mut claim_no).await;
            self.record(
                seq,
                WindowSource::Fallback,
                &snapshot,
                &decision,
                &lost,
                None,
            );
        } else {
            // two ways to end without a proof: no time at all, and a rule that never proves
            let options = match self.step % 16 {
                5 => Options {
                    method: Method::GreedyEdge,
                    ..Options::default()
                },
                13 => Options {
                    budget: Some(Budget::wall(Duration::ZERO)),
                    ..Options::default()
                },
                _ => Options::default(),
            };
            let batch: Batch = decide_batch(&snapshot, &eta, &options, |_| ()).unwrap();
            if kind == 3 {
                // somebody goes home between the decision and the claim
                for pair in batch.decision.assignments.iter().take(2) {
                    let driver_id = pair.driver_id.clone();
                    let _ = self
                        .store
                        .remove_driver(&region, RemoveDriver { driver_id })
                        .await;
                }
            }
            let lost = self
                .claim(seq, taken.owner, &batch.decision, &mut claim_no)
                .await;
            let repaired = (!lost.is_empty()).then(|| {
                let lost: BTreeSet<RequestId> = lost.iter().cloned().collect();
                repair(&snapshot, &batch, &lost, &options).unwrap()
            });
            if let Some(repaired) = &repaired {
                self.repairs += 1;
                let mut added = repaired.decision.clone();
                added.assignments.clone_from(&repaired.added);
                self.claim(seq, taken.owner, &added, &mut claim_no).await;
            }
            let repaired = repaired.map(|repaired| repaired.decision);
            self.record(
                seq,
                WindowSource::Batch,
                &snapshot,
                &batch.decision,
                &lost,
                repaired.as_ref(),
            );
        }
        let body = ReportBody {
            source: ReportSource::Batch,
            ..ReportBody::default()
        };
        let seal = Seal {
            window_seq: seq,
            owner: taken.owner,
            body,
            decisions: None,
        };
        self.store.seal(&region, seal).await.unwrap().unwrap();
        self.windows += 1;
    }

    fn record(
        &self,
        seq: WindowSeq,
        source: WindowSource,
        snapshot: &WindowSnapshot,
        decision: &WindowDecision,
        claim_lost: &[RequestId],
        repaired: Option<&WindowDecision>,
    ) {
        self.recorder.window(WindowEntry {
            region: &self.region,
            window_seq: Some(seq),
            window_id: None,
            source,
            snapshot,
            decision,
            claim_lost,
            repaired,
        });
    }

    async fn claim(
        &mut self,
        seq: WindowSeq,
        owner: Owner,
        decision: &WindowDecision,
        batch_no: &mut u32,
    ) -> Vec<RequestId> {
        let pairs: Vec<ClaimPair> = decision
            .assignments
            .iter()
            .map(|pair| ClaimPair {
                request_id: pair.request_id.clone(),
                driver_id: pair.driver_id.clone(),
                eta: DurationMs::from_seconds(pair.eta_s),
                cost: CostMs::from_seconds(pair.cost_s),
            })
            .collect();
        let batch = ClaimBatch {
            window_seq: seq,
            owner,
            batch_no: *batch_no,
            pairs: pairs.clone(),
        };
        *batch_no += 1;
        let answer = self
            .store
            .claim_batch(&self.region, batch)
            .await
            .unwrap()
            .unwrap();
        let mut lost = Vec::new();
        for (pair, outcome) in pairs.into_iter().zip(&answer.outcomes) {
            match outcome {
                PairOutcome::Claimed { fence, .. } => self.offers.push(key(pair, *fence)),
                PairOutcome::Lost(_) => lost.push(pair.request_id),
            }
        }
        lost
    }
}

fn key(pair: ClaimPair, fence: Fence) -> ClaimKey {
    ClaimKey {
        driver_id: pair.driver_id,
        request_id: pair.request_id,
        fence,
    }
}
