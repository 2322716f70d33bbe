//! A busy region on the embedded store, recorded as the service records it.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use kheya::{
    domain::{
        CostMs, Draw, DriverId, DurationMs, Finite, NodeId, Nonce, Place, RegionId, RequestId,
        UnixMs, WindowSeq,
    },
    protocol::{
        AcquireLeadership, CancelRequest, ClaimKey, Complete, Confirm, DriverStatus, Extend,
        Intake, Patch, Ping, Pings, Release, ReleaseReason, RequestDraft, Sweep, Taker,
        TripOutcome,
    },
    record::{Entry, LogReader, RecordOptions, Recorder, RecordingStore},
    store::{Clock, ManualClock, MemoryStore, Store, StoreOptions},
};

pub(crate) const START: UnixMs = UnixMs::new(1_796_044_599_485);

pub(crate) fn options(directory: &Path, clock: Arc<ManualClock>) -> RecordOptions {
    let mut options = RecordOptions::new(directory.to_owned(), NodeId::new("node:1").unwrap());
    options.clock = clock;
    // nothing is written before it is asked for, so that blocks are the same in every run
    options.flush_every = Duration::from_hours(1);
    options
}

pub(crate) fn entries(path: &Path) -> Vec<Entry> {
    let mut reader = LogReader::open(&[path.to_owned()]).unwrap();
    let entries = reader.by_ref().collect::<Result<_, _>>().unwrap();
    assert_eq!(reader.account().torn, []);
    assert_eq!(reader.account().missing, []);
    entries
}

pub(crate) fn segments(run: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(run)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

struct Trip {
    claim: ClaimKey,
    ends: UnixMs,
}

/// The region and everybody in it.
pub(crate) struct City {
    pub(crate) region: RegionId,
    pub(crate) recorder: Recorder,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) seed: u64,
    drivers: u64,
    requests: u64,
    pub(crate) step: u64,
    pub(crate) taker: Taker,
    trips: Vec<Trip>,
    pub(crate) offers: Vec<ClaimKey>,
    pub(crate) asked: BTreeSet<RequestId>,
    pub(crate) repairs: usize,
    pub(crate) windows: usize,
}

impl City {
    /// A city with so many drivers, and so many requests a window.
    pub(crate) async fn begin(
        options: RecordOptions,
        clock: Arc<ManualClock>,
        seed: u64,
        drivers: u64,
        requests: u64,
    ) -> Self {
        Self::in_region("dhaka", options, clock, seed, drivers, requests).await
    }

    /// The same under another name.
    pub(crate) async fn in_region(
        name: &str,
        options: RecordOptions,
        clock: Arc<ManualClock>,
        seed: u64,
        drivers: u64,
        requests: u64,
    ) -> Self {
        let recorder = Recorder::open(options).unwrap();
        let ticking: Arc<dyn Clock> = clock.clone();
        let memory =
            MemoryStore::with_clock(StoreOptions::default(), Arc::clone(&ticking)).unwrap();
        let store: Arc<dyn Store> = Arc::new(RecordingStore::new(memory, recorder.clone()));
        let mut city = Self {
            region: RegionId::new(name).unwrap(),
            recorder,
            clock,
            store,
            seed,
            drivers,
            requests,
            step: 0,
            taker: Taker::Fallback {
                nonce: Nonce::new(1),
            },
            trips: Vec::new(),
            offers: Vec::new(),
            asked: BTreeSet::new(),
            repairs: 0,
            windows: 0,
        };
        city.ping().await;
        let nonce = Nonce::new(7);
        let leads = city
            .store
            .acquire(
                &city.region,
                AcquireLeadership {
                    node: NodeId::new("node:1").unwrap(),
                    nonce,
                    lease_ms: DurationMs::new(60_000),
                },
            )
            .await
            .unwrap()
            .unwrap();
        city.taker = Taker::Leader {
            epoch: leads.epoch,
            nonce,
        };
        city
    }

    fn draw(&self, what: &str, of: u64) -> Draw {
        Draw::new(self.seed, what).number(self.step).number(of)
    }

    fn place(draw: Draw) -> Place {
        let at = |n: u64| draw.number(n).unit_f64() - 0.5;
        Place::new(23.75 + 0.02 * at(1), 90.39 + 0.02 * at(2)).unwrap()
    }

    pub(crate) fn now(&self) -> UnixMs {
        self.clock.now().ms()
    }

    /// Every driver pings; one in ten says more, one in thirty is busy, a few go offline for good.
    async fn ping(&mut self) {
        let mut pings = Vec::new();
        for n in 0..self.drivers {
            let id = DriverId::new(&format!("d{n:04}")).unwrap();
            let at = Self::place(Draw::new(self.seed, "home").number(n).number(self.step / 4));
            let mut ping = Ping::at(id, at, self.now());
            let luck = self.draw("ping", n).below(60);
            ping.status = match luck {
                0 | 1 => DriverStatus::Busy,
                2 if self.step > 10 => DriverStatus::Offline,
                _ => DriverStatus::Available,
            };
            if luck > 53 {
                ping.acceptance_rate = Patch::Set(Finite::or_zero(0.1 + 0.7 / 3.0));
                ping.speed_kmh = Patch::Clear;
            }
            pings.push(ping);
        }
        self.store
            .ping(&self.region, Pings { pings })
            .await
            .unwrap();
    }

    /// Lets one window pass: pings, requests, what drivers and riders do, the close, the decision.
    pub(crate) async fn window(&mut self) {
        self.step += 1;
        let renew = self.step.is_multiple_of(10);
        self.clock
            .advance(DurationMs::new(if renew { 400 } else { 300 }));
        self.ping().await;
        self.answer_offers().await;
        self.end_trips().await;
        let seq = self.ask().await;
        let _ = self.store.sweep(&self.region, Sweep::default()).await;
        if let Some((seq, closes)) = seq {
            let wait = closes - self.now();
            self.clock.advance(wait);
            self.decide(seq).await;
        }
    }

    async fn ask(&mut self) -> Option<(WindowSeq, UnixMs)> {
        let mut drafts = Vec::new();
        for n in 0..self.requests {
            let id = RequestId::new(&format!("r{:04}-{n}", self.step)).unwrap();
            let draw = self.draw("request", n);
            let mut draft = RequestDraft::at(id.clone(), Self::place(draw));
            if n % 2 == 0 {
                draft.dropoff = Some(Self::place(draw.number(9)));
            }
            if n % 5 == 0 {
                draft.requested_at_ms = Some(self.now() - DurationMs::new(1_500));
            }
            draft.unmatched_cost = (n % 7 == 3).then(|| CostMs::new(1_234_567));
            self.asked.insert(id);
            drafts.push(draft);
        }
        let intake = Intake { requests: drafts };
        // the second is a repeat, and gets the first answer
        self.store
            .intake(&self.region, intake.clone())
            .await
            .unwrap()
            .unwrap();
        let answer = self
            .store
            .intake(&self.region, intake)
            .await
            .unwrap()
            .unwrap();
        answer
            .requests
            .last()
            .map(|taken| (taken.place.window_seq, taken.place.closes_at_ms))
    }

    async fn answer_offers(&mut self) {
        for (n, claim) in (0..).zip(std::mem::take(&mut self.offers)) {
            let region = &self.region;
            match self.draw("offer", n).below(10) {
                0 => {
                    let reason = ReleaseReason::Declined;
                    let _ = self
                        .store
                        .release(region, Release { claim, reason })
                        .await
                        .unwrap();
                }
                1 => {
                    let request_id = claim.request_id;
                    let _ = self
                        .store
                        .cancel(region, CancelRequest { request_id })
                        .await
                        .unwrap();
                }
                2 => {
                    let extend = Extend {
                        claim: claim.clone(),
                        lease_ms: DurationMs::new(20_000),
                    };
                    let _ = self.store.extend(region, extend).await.unwrap();
                    self.offers.push(claim);
                }
                _ => {
                    let confirm = Confirm {
                        claim: claim.clone(),
                    };
                    if self.store.confirm(region, confirm).await.unwrap().is_ok() {
                        let ends = self.now() + DurationMs::new(90_000 + 7_000 * n as i64);
                        self.trips.push(Trip { claim, ends });
                    }
                }
            }
        }
    }

    async fn end_trips(&mut self) {
        let now = self.now();
        let (over, going): (Vec<Trip>, Vec<Trip>) = std::mem::take(&mut self.trips)
            .into_iter()
            .partition(|trip| trip.ends <= now);
        self.trips = going;
        for trip in over {
            let outcome = TripOutcome::Done;
            let complete = Complete {
                claim: trip.claim,
                outcome,
            };
            let _ = self.store.complete(&self.region, complete).await.unwrap();
        }
    }

    /// Lets so much time pass without a request.
    pub(crate) async fn pass(&mut self, ms: i64) {
        for _ in 0..ms / 4_000 {
            self.step += 1;
            self.clock.advance(DurationMs::new(4_000));
            self.ping().await;
            self.end_trips().await;
            let _ = self.store.sweep(&self.region, Sweep::default()).await;
        }
    }
}

/// A record of a busy hour or so: (directory, run, the city at its end).
pub(crate) async fn recorded(directory: &Path, windows: usize) -> City {
    let clock = Arc::new(ManualClock::at(START));
    let mut city = City::begin(options(directory, clock.clone()), clock, 3, 150, 7).await;
    for _ in 0..windows {
        city.window().await;
    }
    city.pass(500_000).await;
    city.recorder.close();
    city
}
