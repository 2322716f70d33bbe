//! A region under test, and the few moves that every case makes in it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::Harness;
use crate::{
    domain::{
        CostMs, DriverId, DurationMs, Fence, NodeId, Nonce, Place, RegionId, RequestId, UnixMs,
        WindowSeq,
    },
    protocol::{
        AcquireLeadership, After, ClaimBatch, ClaimKey, ClaimPair, Confirm, Event, EventType,
        Intake, IntakePlace, Owner, PairOutcome, Ping, PingAnswer, Pings, Release, ReleaseReason,
        ReportBody, ReportSource, RequestDraft, RequestState, Seal, Sweep, TakeWindow, TakenWindow,
        Taker, WindowRefusal,
    },
    store::Store,
};

/// A region of a store under test.
pub struct World<'a> {
    harness: &'a dyn Harness,
    /// The region.
    pub region: RegionId,
    nonces: AtomicU64,
    batches: AtomicU32,
}

/// The instant at which it is `ms` milliseconds after `at`.
pub(super) fn later(at: UnixMs, ms: i64) -> UnixMs {
    at + DurationMs::new(ms)
}

/// A driver's id.
pub(super) fn driver(id: &str) -> DriverId {
    DriverId::new(id).unwrap()
}

/// A request's id.
pub(super) fn request(id: &str) -> RequestId {
    RequestId::new(id).unwrap()
}

/// A place `north` thousandths of a degree (111 m each) north of the middle.
pub(super) fn place(north: i32) -> Place {
    Place::new(23.75 + f64::from(north) / 1_000.0, 90.39).unwrap()
}

/// A request that tells nothing but its id.
pub(super) fn draft(id: &str) -> RequestDraft {
    RequestDraft::at(request(id), place(0))
}

impl<'a> World<'a> {
    pub(super) fn new(harness: &'a dyn Harness, case: &str) -> Self {
        let name = case.replace('_', "-");
        let name = name.get(..name.len().min(64)).unwrap_or("case");
        Self {
            harness,
            region: RegionId::new(name).unwrap(),
            nonces: AtomicU64::new(1),
            batches: AtomicU32::new(0),
        }
    }

    /// The store.
    pub fn store(&self) -> &'a dyn Store {
        self.harness.store()
    }

    /// A number that was not drawn before.
    pub fn nonce(&self) -> Nonce {
        Nonce::new(self.nonces.fetch_add(1, Ordering::Relaxed))
    }

    /// Lets time pass.
    pub async fn wait(&self, ms: i64) {
        self.harness.advance(DurationMs::new(ms)).await;
    }

    /// Takes the region's data away.
    pub async fn lose(&self) {
        self.harness.lose(&self.region).await;
    }

    /// A replica stops following here.
    pub async fn remember(&self) {
        self.harness.remember(&self.region).await;
    }

    /// The replica that stopped following is promoted.
    pub async fn fall_back(&self) {
        self.harness.fall_back(&self.region).await;
    }

    /// The store's clock; the region must have come to be.
    pub async fn now(&self) -> UnixMs {
        self.store().overview(&self.region).await.unwrap().now_ms
    }

    /// A first ping, so that the region comes to be; its driver is offline.
    pub async fn begin(&self) -> UnixMs {
        let mut ping = Ping::at(driver("opener"), place(0), UnixMs::new(1));
        ping.status = crate::protocol::DriverStatus::Offline;
        self.ping_all(vec![ping]).await;
        self.now().await
    }

    /// Sends pings.
    pub async fn ping_all(&self, pings: Vec<Ping>) -> PingAnswer {
        self.store()
            .ping(&self.region, Pings { pings })
            .await
            .unwrap()
    }

    /// A driver is available now.
    pub async fn available(&self, id: &str) {
        let now = self.begin().await;
        let answer = self
            .ping_all(vec![Ping::at(driver(id), place(1), now)])
            .await;
        assert_eq!(answer.accepted + answer.stale, 1, "{answer:?}");
    }

    /// Takes a request in, for the first time.
    pub async fn ask(&self, draft: RequestDraft) -> IntakePlace {
        let answer = self
            .store()
            .intake(
                &self.region,
                Intake {
                    requests: vec![draft],
                },
            )
            .await
            .unwrap()
            .unwrap();
        assert_eq!(answer.rejected, []);
        let taken = answer.requests.first().unwrap();
        assert!(!taken.replayed);
        taken.place
    }

    /// A node leads for a long time.
    pub async fn lead(&self) -> Taker {
        let nonce = self.nonce();
        let leads = self
            .store()
            .acquire(
                &self.region,
                AcquireLeadership {
                    node: NodeId::new("node").unwrap(),
                    nonce,
                    lease_ms: DurationMs::new(60_000),
                },
            )
            .await
            .unwrap()
            .unwrap();
        Taker::Leader {
            epoch: leads.epoch,
            nonce,
        }
    }

    /// Waits until a window may be taken over and does so; earlier ones are sealed as they are.
    pub async fn take(&self, seq: WindowSeq) -> TakenWindow {
        loop {
            let overview = self.store().overview(&self.region).await.unwrap();
            let window = overview.windows.first().unwrap();
            let (oldest, overdue) = (window.seq, window.overdue_at());
            if overview.now_ms < overdue {
                self.wait((overdue - overview.now_ms).get()).await;
            }
            let taken = self.take_now(oldest).await.unwrap();
            if oldest >= seq {
                return taken;
            }
            self.seal(oldest, taken.owner).await;
        }
    }

    /// Tries to take a window over now.
    pub async fn take_now(&self, window_seq: WindowSeq) -> Result<TakenWindow, WindowRefusal> {
        let taker = Taker::Fallback {
            nonce: self.nonce(),
        };
        let take = TakeWindow { window_seq, taker };
        self.store().take_window(&self.region, take).await.unwrap()
    }

    /// Claims pairs for a window in a batch of their own.
    pub async fn claim_all(
        &self,
        seq: WindowSeq,
        owner: Owner,
        pairs: &[(&str, &str)],
    ) -> Vec<PairOutcome> {
        let batch = ClaimBatch {
            window_seq: seq,
            owner,
            batch_no: self.batches.fetch_add(1, Ordering::Relaxed),
            pairs: pairs.iter().map(|(r, d)| pair(r, d)).collect(),
        };
        let answer = self
            .store()
            .claim_batch(&self.region, batch)
            .await
            .unwrap()
            .unwrap();
        answer.outcomes.clone()
    }

    /// Seals a window.
    pub async fn seal(&self, seq: WindowSeq, owner: Owner) {
        let seal = Seal {
            window_seq: seq,
            owner,
            body: body(),
            decisions: None,
        };
        self.store()
            .seal(&self.region, seal)
            .await
            .unwrap()
            .unwrap();
    }

    /// A driver is held for a request that came by a window: the whole way there.
    pub async fn assign(&self, request: &str, to: &str) -> ClaimKey {
        self.available(to).await;
        let window = self.ask(draft(request)).await.window_seq;
        self.assign_pending(window, request, to).await
    }

    /// A driver is held for a pending request in a window.
    pub async fn assign_pending(&self, window: WindowSeq, id: &str, to: &str) -> ClaimKey {
        let taken = self.take(window).await;
        let outcomes = self.claim_all(window, taken.owner, &[(id, to)]).await;
        self.seal(window, taken.owner).await;
        ClaimKey {
            driver_id: driver(to),
            request_id: request(id),
            fence: fence(outcomes.first().copied().unwrap()),
        }
    }

    /// The driver accepts.
    pub async fn confirm(
        &self,
        claim: &ClaimKey,
    ) -> Result<crate::protocol::ClaimAnswer, crate::protocol::ClaimRefusal> {
        let call = Confirm {
            claim: claim.clone(),
        };
        self.store().confirm(&self.region, call).await.unwrap()
    }

    /// The driver is given back.
    pub async fn release(
        &self,
        claim: &ClaimKey,
        reason: ReleaseReason,
    ) -> Result<crate::protocol::ClaimAnswer, crate::protocol::ClaimRefusal> {
        let call = Release {
            claim: claim.clone(),
            reason,
        };
        self.store().release(&self.region, call).await.unwrap()
    }

    /// The trip is over.
    pub async fn complete(
        &self,
        claim: &ClaimKey,
    ) -> Result<crate::protocol::ClaimAnswer, crate::protocol::ClaimRefusal> {
        let call = crate::protocol::Complete {
            claim: claim.clone(),
            outcome: crate::protocol::TripOutcome::Done,
        };
        self.store().complete(&self.region, call).await.unwrap()
    }

    /// Sweeps until nothing is due.
    pub async fn sweep(&self) {
        while self
            .store()
            .sweep(&self.region, Sweep {})
            .await
            .unwrap()
            .more
        {}
    }

    /// Where a request stands.
    pub async fn state(&self, id: &str) -> Option<RequestState> {
        let view = self
            .store()
            .request(&self.region, &request(id))
            .await
            .unwrap();
        view.map(|view| view.state)
    }

    /// Where a driver stands.
    pub async fn driver_state(&self, id: &str) -> Option<crate::protocol::DriverState> {
        let view = self
            .store()
            .driver(&self.region, &driver(id))
            .await
            .unwrap();
        view.map(|view| view.state)
    }

    /// The region's oldest unsealed window.
    pub async fn window(&self) -> Option<WindowSeq> {
        let overview = self.store().overview(&self.region).await.unwrap();
        overview.windows.first().map(|window| window.seq)
    }

    /// Every event so far.
    pub async fn events(&self) -> Vec<Event> {
        let page = self
            .store()
            .events(&self.region, After::Oldest, 1_000)
            .await
            .unwrap();
        page.unwrap().events
    }

    /// The types of every event about a request.
    pub async fn story(&self, id: &str) -> Vec<EventType> {
        let id = request(id);
        let events = self.events().await;
        events
            .iter()
            .filter(|event| event.request_id.as_ref() == Some(&id))
            .map(|event| event.kind)
            .collect()
    }
}

/// A pair of no particular distance.
pub(super) fn pair(r: &str, d: &str) -> ClaimPair {
    ClaimPair {
        request_id: request(r),
        driver_id: driver(d),
        eta: DurationMs::new(90_000),
        cost: CostMs::new(90_000),
    }
}

/// The fence of a pair that must have been claimed.
pub(super) fn fence(outcome: PairOutcome) -> Fence {
    match outcome {
        PairOutcome::Claimed { fence, .. } => Some(fence),
        PairOutcome::Lost(_) => None,
    }
    .unwrap()
}

/// A report that tells nothing in particular.
pub(super) fn body() -> ReportBody {
    ReportBody {
        source: ReportSource::Fallback,
        cause: Some("test".into()),
        ..ReportBody::default()
    }
}
