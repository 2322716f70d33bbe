//! A made-up world around one region: nodes and a dispatch tier that repeat, reorder, come late
//! and err.

use std::sync::Arc;

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

use super::{
    claim::ClaimKey,
    claim_batch::{BatchAnswer, ClaimBatch, ClaimPair, PairOutcome},
    claim_calls::{Complete, Confirm, Extend, Release, ReleaseReason, TripOutcome},
    configure::Configure,
    driver::{DriverStatus, Patch, Ping, Pings, RemoveDriver},
    history::ms,
    leadership::{AcquireLeadership, RenewLeadership, ResignLeadership},
    operations::{Answer, Command},
    own_window::{BeginOwnWindow, ClaimOwnBatch, FinishOwnWindow, OwnPair},
    reconcile::{Reconcile, TripTold},
    region::Region,
    report::{ReportBody, Seal},
    request::{CancelRequest, Fingerprint, Intake, RequestDraft},
    rules::RegionRules,
    sweep::Sweep,
    trip_end::TripEnd,
    window::{Owner, TakeWindow, Taker, WindowPhase},
};
use crate::domain::{
    ConfigVersion, CostMs, DriverId, Epoch, Fence, Finite, NodeId, Nonce, Place, RequestId,
    RiderId, StoreTime, UnixMs, VehicleClass, WindowId, WindowSeq,
};

/// Rules under which much happens in little time.
pub fn lively_rules() -> RegionRules {
    RegionRules {
        max_requests: 3,
        max_snapshot_requests: 4,
        max_pending: 8,
        request_memory_ms: ms(120_000),
        max_wait_ms: ms(40_000),
        decline_cooldown_ms: ms(90_000),
        driver_ttl_ms: ms(600_000),
        max_trip_ms: ms(300_000),
        window_result_ttl_ms: ms(60_000),
        ..RegionRules::default()
    }
}

/// The source of everything that the nodes and the dispatch tier do.
#[derive(Debug)]
pub struct World {
    random: ChaCha8Rng,
    /// The store's clock.
    pub now: StoreTime,
    keys: Vec<ClaimKey>,
    owners: Vec<(WindowSeq, Owner)>,
    leaders: Vec<(Epoch, Nonce)>,
    sent: Vec<Command>,
    requests: u32,
    nonces: u64,
    batch: u32,
}

impl World {
    /// The world of a seed, in the year 2026.
    pub fn new(seed: u64) -> Self {
        Self {
            random: ChaCha8Rng::seed_from_u64(seed),
            now: StoreTime::from_ms(UnixMs::new(1_796_044_599_485)),
            keys: Vec::new(),
            owners: Vec::new(),
            leaders: Vec::new(),
            sent: Vec::new(),
            requests: 0,
            nonces: 0,
            batch: 0,
        }
    }

    pub(crate) fn below(&mut self, n: u32) -> u32 {
        // the bias of a remainder does not matter here
        self.random.next_u32() % n.max(1)
    }

    pub(crate) fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        let place = self.below(of.len() as u32) as usize;
        of.get(place).cloned()
    }

    /// Mostly one of the last, sometimes any.
    fn recent<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        let from = if self.chance(70) {
            of.len().saturating_sub(3)
        } else {
            0
        };
        self.pick(of.get(from..).unwrap_or_default())
    }

    fn nonce(&mut self) -> Nonce {
        self.nonces += 1;
        Nonce::new(self.nonces)
    }

    /// Lets time pass: mostly little, sometimes past a lease, a quarantine, a memory.
    pub fn tick(&mut self) {
        let by = match self.below(100) {
            0..=39 => self.below(50),
            40..=74 => self.below(1_200),
            75..=92 => self.below(4_000),
            93..=96 => 15_000 + self.below(2_000),
            97 => 61_000,
            98 => 130_000,
            _ => 310_000,
        };
        self.now = StoreTime::from_micros(self.now.micros() + u64::from(by) * 1_000 + 1);
    }

    fn driver(&mut self) -> DriverId {
        let n = self.below(4);
        id(DriverId::new(&format!("d{n}")))
    }

    fn request(&mut self) -> RequestId {
        let oldest = self.requests.saturating_sub(6);
        let n = oldest + self.below(self.requests - oldest + 1);
        id(RequestId::new(&format!("r{n}")))
    }

    fn draft(&mut self) -> RequestDraft {
        if self.chance(60) {
            self.requests += 1;
        }
        let mut draft = RequestDraft::at(self.request(), middle());
        // the same id always has the same body, but for a few
        let n = draft.id.as_str().len() + draft.id.as_str().bytes().map(usize::from).sum::<usize>();
        if n.is_multiple_of(3) {
            draft.rider_id = RiderId::new(&format!("p{}", n % 4)).ok();
        }
        if n.is_multiple_of(5) {
            draft.exclude_driver_ids = vec![id(DriverId::new("d0"))];
        }
        if self.chance(5) {
            draft.max_wait_ms = Some(ms(20_000));
        }
        if self.chance(5) {
            let age = i64::from(self.below(60_000)) - 10_000;
            draft.requested_at_ms = Some(self.now.ms() - ms(age));
        }
        draft
    }

    fn key(&mut self) -> Option<ClaimKey> {
        let keys = std::mem::take(&mut self.keys);
        let key = self.recent(&keys);
        self.keys = keys;
        let mut key = key?;
        match self.below(20) {
            0 => key.fence = Fence::new(key.fence.get() + 1),
            1 => key.fence = Fence::new(key.fence.get().saturating_sub(1)),
            2 => key.driver_id = self.driver(),
            _ => {}
        }
        Some(key)
    }

    /// The next command, given what everybody can see of the region.
    pub fn next(&mut self, region: &Region) -> Command {
        let command = if !self.sent.is_empty() && self.chance(12) {
            let sent = std::mem::take(&mut self.sent);
            let command = self.recent(&sent);
            self.sent = sent;
            command
        } else {
            self.fresh(region)
        };
        let command = command.unwrap_or(Command::Sweep(Sweep {}));
        self.sent.push(command.clone());
        command
    }

    /// A command that brings a region about.
    pub fn first(&mut self) -> Command {
        Command::Ping(Pings {
            pings: vec![self.ping()],
        })
    }

    fn fresh(&mut self, region: &Region) -> Option<Command> {
        Some(match self.below(100) {
            0..=13 => Command::Ping(Pings {
                pings: vec![self.ping()],
            }),
            14 => Command::RemoveDriver(RemoveDriver {
                driver_id: self.driver(),
            }),
            15..=27 => Command::Intake(Intake {
                requests: (0..=self.below(2)).map(|_| self.draft()).collect(),
            }),
            28..=30 => Command::Cancel(CancelRequest {
                request_id: self.request(),
            }),
            31..=38 => Command::Confirm(Confirm { claim: self.key()? }),
            39..=44 => Command::Release(Release {
                claim: self.key()?,
                reason: match self.below(4) {
                    0 => ReleaseReason::Declined,
                    1 => ReleaseReason::Timeout,
                    2 => ReleaseReason::Undeliverable,
                    _ => ReleaseReason::DriverCancelled,
                },
            }),
            45..=49 => Command::Complete(Complete {
                claim: self.key()?,
                outcome: TripOutcome::Done,
            }),
            50 => Command::Extend(Extend {
                claim: self.key()?,
                lease_ms: ms(i64::from(self.below(80_000))),
            }),
            51..=61 => self.take(region),
            62..=73 => self.claim(region)?,
            74..=78 => self.seal(region)?,
            79..=84 => self.own_window(region),
            85..=90 => self.leadership()?,
            91 => self.configure(region),
            92 => self.reconcile(region),
            _ => Command::Sweep(Sweep {}),
        })
    }

    fn ping(&mut self) -> Ping {
        let back = i64::from(self.below(5) / 3) * i64::from(self.below(5_000));
        let ahead = if self.chance(3) { 9_000 } else { 0 };
        let at_ms = self.now.ms() - ms(back) + ms(ahead);
        let mut ping = Ping::at(self.driver(), middle(), at_ms);
        if self.chance(12) {
            ping.status = DriverStatus::Offline;
        }
        if self.chance(20) {
            ping.place = id(Place::new(23.75, 90.39 + f64::from(self.below(3)) / 50.0));
            ping.speed_kmh = self.patch(Finite::or_zero(17.5));
            ping.vehicle_class = self.patch(id(VehicleClass::new("car")));
            let end = TripEnd {
                place: middle(),
                at_ms: self.now.ms() + ms(60_000),
            };
            ping.trip_end = self.patch(end);
        }
        ping
    }

    fn patch<T>(&mut self, value: T) -> Patch<T> {
        match self.below(3) {
            0 => Patch::Keep,
            1 => Patch::Clear,
            _ => Patch::Set(value),
        }
    }

    fn take(&mut self, region: &Region) -> Command {
        let window_seq = match region.windows().next() {
            Some(window) if !self.chance(10) => {
                // nodes wait for a close; so time passes here, to it or beyond
                if self.chance(75) {
                    let target = if self.chance(50) {
                        window.overdue_at()
                    } else {
                        window.closes_at_ms
                    };
                    self.now = self.now.max(StoreTime::from_ms(target));
                }
                window.seq
            }
            _ => WindowSeq::new(u64::from(self.below(20))),
        };
        let leaders = std::mem::take(&mut self.leaders);
        let leader = self.recent(&leaders);
        self.leaders = leaders;
        let taker = match leader {
            Some((epoch, nonce)) if self.chance(50) => Taker::Leader { epoch, nonce },
            _ => Taker::Fallback {
                nonce: self.nonce(),
            },
        };
        Command::TakeWindow(TakeWindow { window_seq, taker })
    }

    fn owner(&mut self, region: &Region) -> Option<(WindowSeq, Owner)> {
        if let Some(window) = region.windows().next()
            && let WindowPhase::Taken { owner, .. } = window.phase
            && self.chance(65)
        {
            return Some((window.seq, owner));
        }
        let owners = std::mem::take(&mut self.owners);
        let owner = if self.chance(60) {
            owners.last().copied()
        } else {
            self.recent(&owners)
        };
        self.owners = owners;
        owner
    }

    fn claim(&mut self, region: &Region) -> Option<Command> {
        let (window_seq, owner) = self.owner(region)?;
        if self.chance(80) {
            self.batch += 1;
        }
        let pending: Vec<RequestId> = region
            .requests()
            .iter()
            .filter(|(_, r)| r.state == super::request::RequestState::Pending)
            .map(|(id, _)| id.clone())
            .collect();
        let pairs = (0..=self.below(3))
            .map(|_| ClaimPair {
                request_id: match self.pick(&pending) {
                    Some(id) if !self.chance(15) => id,
                    _ => self.request(),
                },
                driver_id: self.driver(),
                eta: ms(60_000),
                cost: CostMs::new(60_000),
            })
            .collect();
        Some(Command::ClaimBatch(ClaimBatch {
            window_seq,
            owner,
            batch_no: self.batch,
            pairs,
        }))
    }

    fn seal(&mut self, region: &Region) -> Option<Command> {
        let (window_seq, owner) = self.owner(region)?;
        Some(Command::Seal(Seal {
            window_seq,
            owner,
            body: ReportBody::default(),
            decisions: None,
        }))
    }

    fn own_window(&mut self, region: &Region) -> Command {
        let n = self.now.ms().get() / 30_000 % 3;
        let window_id = id(WindowId::new(&format!("w{n}")));
        let runner = Nonce::new(u64::from(self.below(2)) + 1);
        match self.below(5) {
            0 | 1 => Command::BeginOwn(BeginOwnWindow {
                window_id,
                fingerprint: Fingerprint::of(if self.chance(80) { b"a" } else { b"b" }),
                runner,
                work_ms: ms(2_000),
            }),
            2 | 3 => {
                let driver_id = self.driver();
                self.batch += 1;
                Command::ClaimOwn(ClaimOwnBatch {
                    window_id,
                    runner,
                    batch_no: self.batch,
                    lease_ms: None,
                    pairs: vec![OwnPair {
                        request: Arc::new(self.draft()),
                        driver_id,
                        eta: ms(60_000),
                        cost: CostMs::new(60_000),
                    }],
                })
            }
            _ => Command::FinishOwn(FinishOwnWindow {
                window_id,
                runner,
                result: format!("{}", region.last_event()).into(),
            }),
        }
    }

    fn leadership(&mut self) -> Option<Command> {
        let leaders = std::mem::take(&mut self.leaders);
        let leader = self.recent(&leaders);
        self.leaders = leaders;
        Some(match self.below(4) {
            0 | 1 => Command::Acquire(AcquireLeadership {
                node: id(NodeId::new(&format!("n{}", self.below(2)))),
                nonce: self.nonce(),
                lease_ms: ms(6_000),
            }),
            2 => {
                let (epoch, nonce) = leader?;
                Command::Renew(RenewLeadership {
                    epoch,
                    nonce,
                    lease_ms: ms(6_000),
                })
            }
            _ => {
                let (epoch, nonce) = leader?;
                Command::Resign(ResignLeadership { epoch, nonce })
            }
        })
    }

    fn configure(&mut self, region: &Region) -> Command {
        let mut rules = region.rules().clone();
        rules.window_ms = ms(i64::from(self.below(5)) * 1_000 + 1_000);
        Command::Configure(Configure {
            rules,
            document: "{}".into(),
            expected: self.chance(30).then_some(ConfigVersion::new(1)),
            actor: "ops".into(),
            changes: "{}".into(),
        })
    }

    fn reconcile(&mut self, region: &Region) -> Command {
        Command::Reconcile(Reconcile {
            generation: region.generation(),
            on_trip: vec![TripTold {
                driver_id: self.driver(),
                request_id: self.request(),
            }],
            pending: vec![self.draft()],
            done: self.chance(30),
        })
    }

    /// Learns what the answer tells its caller.
    pub fn learn(&mut self, command: &Command, answer: &Answer) {
        match (command, answer) {
            (Command::TakeWindow(take), Answer::TakeWindow(Ok(taken))) => {
                self.owners.push((take.window_seq, taken.owner));
            }
            (Command::Acquire(ask), Answer::Acquire(Ok(leads))) => {
                self.leaders.push((leads.epoch, ask.nonce));
            }
            (Command::ClaimBatch(batch), Answer::ClaimBatch(Ok(outcomes))) => {
                let pairs = batch.pairs.iter().map(|p| (&p.request_id, &p.driver_id));
                self.learn_keys(pairs, outcomes);
            }
            (Command::ClaimOwn(batch), Answer::ClaimOwn(Ok(outcomes))) => {
                let pairs = batch.pairs.iter().map(|p| (&p.request.id, &p.driver_id));
                self.learn_keys(pairs, outcomes);
            }
            (Command::Reconcile(_), Answer::Reconcile(Ok(told))) => {
                self.keys
                    .extend(told.restored.iter().map(|restored| ClaimKey {
                        driver_id: restored.driver_id.clone(),
                        request_id: restored.request_id.clone(),
                        fence: restored.fence,
                    }));
            }
            _ => {}
        }
    }

    fn learn_keys<'a>(
        &mut self,
        pairs: impl Iterator<Item = (&'a RequestId, &'a DriverId)>,
        answer: &BatchAnswer,
    ) {
        for ((request, driver), outcome) in pairs.zip(&answer.outcomes) {
            if let PairOutcome::Claimed { fence, .. } = outcome {
                self.keys.push(ClaimKey {
                    driver_id: driver.clone(),
                    request_id: request.clone(),
                    fence: *fence,
                });
            }
        }
    }
}

fn middle() -> Place {
    #[expect(clippy::unwrap_used, reason = "a constant place on earth")]
    Place::new(23.75, 90.39).unwrap()
}

pub(crate) fn id<T, E: std::fmt::Debug>(id: Result<T, E>) -> T {
    #[expect(clippy::unwrap_used, reason = "made of letters and digits")]
    id.unwrap()
}
