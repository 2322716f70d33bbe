//! Who may send what: the dispatch tier what the records show, a node what it believes.
//!
//! A message is sent while it makes sense to its sender. It becomes stale, early or repeated on its
//! way; so nothing here is sent only because it will be refused.

use super::{
    bounds::{Bounds, Kind, halves},
    cast,
    held::{Message, Moment},
    node::Node,
};
use crate::protocol::{
    AcquireLeadership, BeginOwnWindow, CancelRequest, ClaimBatch, ClaimKey, ClaimOwnBatch,
    ClaimPhase, Command, Complete, Confirm, Extend, FinishOwnWindow, Intake, Pings, Reconcile,
    Region, Release, ReleaseReason, RemoveDriver, RenewLeadership, ReportBody, RequestState,
    ResignLeadership, Seal, Sweep, TakeWindow, Taker, TripOutcome, TripTold,
};

/// Everything that may be sent through node `n` while the store holds `region`.
pub(super) fn all(
    region: Option<&Region>,
    node: &Node,
    n: usize,
    moment: Moment,
    bounds: &Bounds,
) -> Vec<(Kind, Message)> {
    let mut sends = Sends {
        n,
        node,
        moment,
        bounds,
        out: Vec::new(),
    };
    match region {
        Some(region) => {
            sends.dispatch_tier(region);
            sends.leader(region);
            sends.owner(region);
            sends.own_window(region);
            sends.sweeper(region);
        }
        // whoever comes by finds out
        None => sends.push(Kind::Sweep, Command::Sweep(Sweep {})),
    }
    sends.out
}

struct Sends<'a> {
    n: usize,
    node: &'a Node,
    moment: Moment,
    bounds: &'a Bounds,
    out: Vec<(Kind, Message)>,
}

impl Sends<'_> {
    fn has(&self, kind: Kind) -> bool {
        self.bounds.travels.contains(&kind) || self.bounds.at_once.contains(&kind)
    }

    fn push(&mut self, kind: Kind, command: Command) {
        if self.has(kind) {
            let known = self.node.known;
            self.out.push((kind, Message { command, known }));
        }
    }

    fn dispatch_tier(&mut self, region: &Region) {
        for n in 0..cast::PAIRS {
            let id = cast::request(n);
            let record = region.requests().get(&id);
            let state = record.map(|record| record.state);
            if state.is_none() || state == Some(RequestState::Released) {
                let requests = vec![cast::draft(n)];
                self.push(Kind::Intake, Command::Intake(Intake { requests }));
            } else if n == 0 {
                let requests = vec![cast::other_draft(n)];
                self.push(Kind::OtherBody, Command::Intake(Intake { requests }));
            }
            if matches!(state, Some(RequestState::Pending | RequestState::Assigned)) {
                let cancel = CancelRequest { request_id: id };
                self.push(Kind::Cancel, Command::Cancel(cancel));
            }
            self.driver(region, n);
        }
        self.tell(region);
    }

    fn driver(&mut self, region: &Region, n: usize) {
        let driver_id = cast::driver(n);
        let now = self.moment.now().ms();
        let record = region.drivers().get(&driver_id);
        let pinged = record.and_then(|record| record.presence.as_ref().map(|p| p.at_ms));
        if pinged.is_none_or(|at| at < now) {
            let pings = vec![cast::ping(n, now)];
            self.push(Kind::Ping, Command::Ping(Pings { pings }));
        }
        let Some(claim) = record.and_then(|record| record.claim.as_ref()) else {
            if pinged.is_some_and(|at| at < now) {
                self.push(
                    Kind::Remove,
                    Command::RemoveDriver(RemoveDriver { driver_id }),
                );
            }
            return;
        };
        let key = ClaimKey {
            driver_id,
            request_id: claim.request_id.clone(),
            fence: claim.fence,
        };
        self.claim_calls(&key, claim.phase);
    }

    fn claim_calls(&mut self, key: &ClaimKey, phase: ClaimPhase) {
        let claim = || key.clone();
        let give_back = |reason| {
            Command::Release(Release {
                claim: claim(),
                reason,
            })
        };
        match phase {
            ClaimPhase::Offered { .. } => {
                self.push(Kind::Confirm, Command::Confirm(Confirm { claim: claim() }));
                self.push(Kind::Decline, give_back(ReleaseReason::Declined));
                self.push(Kind::Undeliverable, give_back(ReleaseReason::Undeliverable));
                let extend = Extend {
                    claim: claim(),
                    lease_ms: halves(4),
                };
                self.push(Kind::Extend, Command::Extend(extend));
            }
            ClaimPhase::OnTrip { .. } => {
                let complete = Complete {
                    claim: claim(),
                    outcome: TripOutcome::Done,
                };
                self.push(Kind::Complete, Command::Complete(complete));
            }
        }
    }

    /// After a loss: what the dispatch tier may know to be true, told for the known generation.
    fn tell(&mut self, region: &Region) {
        if region.quarantine(self.moment.now()).is_none() || self.node.known != region.generation()
        {
            return;
        }
        let generation = self.node.known;
        for (trip, waits) in [(true, false), (true, true), (false, true), (false, false)] {
            let trips = trip.then(|| TripTold {
                driver_id: cast::driver(0),
                request_id: cast::request(0),
            });
            let telling = Reconcile {
                generation,
                on_trip: trips.into_iter().collect(),
                pending: waits.then(|| cast::draft(1)).into_iter().collect(),
                done: true,
            };
            self.push(Kind::Reconcile, Command::Reconcile(telling));
        }
    }

    fn leader(&mut self, region: &Region) {
        match self.node.leads {
            None if self.node.drawn < self.bounds.draws => {
                let ask = AcquireLeadership {
                    node: cast::node(self.n),
                    nonce: cast::election(self.n, self.node.drawn),
                    lease_ms: halves(2),
                };
                self.push(Kind::Acquire, Command::Acquire(ask));
            }
            None => {}
            Some((epoch, nonce)) => {
                let lease_ms = halves(2);
                let renewal = RenewLeadership {
                    epoch,
                    nonce,
                    lease_ms,
                };
                let over = region.leadership.leader.as_ref().is_none_or(|leader| {
                    leader.until_ms < self.moment.now().ms() + lease_ms || leader.nonce != nonce
                });
                if over {
                    self.push(Kind::Renew, Command::Renew(renewal));
                }
                let resignation = ResignLeadership { epoch, nonce };
                self.push(Kind::Resign, Command::Resign(resignation));
            }
        }
        let now = self.moment.now().ms();
        let Some(window) = region.windows().find(|window| window.closes_at_ms <= now) else {
            return;
        };
        let window_seq = window.seq;
        if self.node.owns.is_some_and(|(seq, _)| seq == window_seq) {
            return;
        }
        if let Some((epoch, nonce)) = self.node.leads {
            let taker = Taker::Leader { epoch, nonce };
            self.push(
                Kind::Lead,
                Command::TakeWindow(TakeWindow { window_seq, taker }),
            );
        }
        // a take-over too early is a normal mistake: the watcher's clock runs ahead
        let nonce = cast::watcher(self.n);
        let taker = Taker::Fallback { nonce };
        self.push(
            Kind::TakeOver,
            Command::TakeWindow(TakeWindow { window_seq, taker }),
        );
    }

    fn owner(&mut self, region: &Region) {
        let Some((window_seq, owner)) = self.node.owns else {
            return;
        };
        let waits = |n: &usize| {
            let record = region.requests().get(&cast::request(*n));
            record.is_some_and(|record| record.state == RequestState::Pending)
        };
        for (batch_no, pairs) in self.bounds.decisions[self.n].iter().enumerate() {
            if pairs.iter().any(|(request, _)| waits(request)) {
                let batch = ClaimBatch {
                    window_seq,
                    owner,
                    batch_no: batch_no as u32,
                    pairs: pairs.iter().map(|&(r, d)| cast::pair(r, d)).collect(),
                };
                self.push(Kind::Claim, Command::ClaimBatch(batch));
            }
        }
        let seal = Seal {
            window_seq,
            owner,
            body: ReportBody::default(),
            decisions: None,
        };
        self.push(Kind::Seal, Command::Seal(seal));
    }

    /// The caller asks for its own window through this node; the second node may be asked with
    /// another body.
    fn own_window(&mut self, region: &Region) {
        let window_id = cast::own_window();
        let Some(runner) = self.node.runs else {
            if self.node.begun >= self.bounds.draws {
                return;
            }
            let runner = cast::runner(self.n, self.node.begun);
            let begin = |other| {
                Command::BeginOwn(BeginOwnWindow {
                    window_id: window_id.clone(),
                    fingerprint: cast::own_body(other),
                    runner,
                    work_ms: halves(2),
                })
            };
            self.push(Kind::Own, begin(false));
            if self.n == 1 && region.own_windows.contains_key(&window_id) {
                self.push(Kind::Own, begin(true));
            }
            return;
        };
        for (batch_no, pairs) in self.bounds.decisions[self.n].iter().enumerate() {
            let batch = ClaimOwnBatch {
                window_id: window_id.clone(),
                runner,
                batch_no: batch_no as u32,
                lease_ms: None,
                pairs: pairs.iter().map(|&(r, d)| cast::own_pair(r, d)).collect(),
            };
            self.push(Kind::Own, Command::ClaimOwn(batch));
        }
        let finish = FinishOwnWindow {
            window_id,
            runner,
            result: ["first", "second"][self.n].into(),
        };
        self.push(Kind::Own, Command::FinishOwn(finish));
    }

    fn sweeper(&mut self, region: &Region) {
        let now = self.moment.now().ms();
        let due = region.next_due().is_some_and(|at| at <= now);
        let found = region.generation() != self.node.known
            || *region.store_id != *self.moment.store_id()
            || region.reconciling != crate::protocol::reconcile::Reconciling::Idle;
        // requests that outlived a quarantine get their window from the sweep
        let stranded = !region.pending.is_empty() && region.windows.is_empty();
        if due || found || stranded {
            self.push(Kind::Sweep, Command::Sweep(Sweep {}));
        }
    }
}
