//! The load: cars that tell their places, riders that come and give up, windows of the dispatch
//! tier's own, and drivers that answer offers. Whatever has an unknown outcome is repeated.

mod cars;
mod drivers;
mod riders;
mod tuning;
mod windows;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use tokio::{runtime::Handle, sync::watch, task::JoinHandle};

pub(crate) use drivers::complete;
pub(crate) use tuning::WINDOWS_MS;

use crate::{calls::Caller, chance::Chance, stage::machine_ms};

/// Cars of a region.
pub(crate) const CARS: usize = 60;

/// How long calls are repeated: over any fault of a schedule, and its healing.
const PATIENCE: Duration = Duration::from_secs(20);

/// How far a schedule is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Only the first regions are there.
    Beginning,
    /// New riders come.
    Loading,
    /// Nothing new comes; what there is ends.
    Ending,
    /// Nothing is done any more.
    Over,
}

/// What the tasks of a load share.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) caller: Caller,
    pub(crate) region: String,
    pub(crate) seed: u64,
    /// By how much everything comes more slowly.
    slower: f64,
    /// It comes to be when the faults have begun.
    late: bool,
    phase: watch::Receiver<Phase>,
    ahead_ms: Arc<AtomicI64>,
    /// Events as a follower saw them, by cursor.
    pub(crate) seen: Arc<Mutex<BTreeMap<String, Value>>>,
}

impl World {
    /// Whether new riders come.
    fn is_loading(&self) -> bool {
        *self.phase.borrow() <= Phase::Loading
    }

    fn is_over(&self) -> bool {
        *self.phase.borrow() == Phase::Over
    }

    /// Waits until the region is to come to be.
    async fn is_to_be(&self) {
        if self.late {
            let mut phase = self.phase.clone();
            phase
                .wait_for(|phase| *phase > Phase::Beginning)
                .await
                .unwrap();
        }
    }

    fn chance(&self, role: &str) -> Chance {
        let mut seed = self.seed;
        for byte in self.region.bytes().chain(role.bytes()) {
            seed = seed.wrapping_mul(31).wrapping_add(u64::from(byte));
        }
        Chance::new(seed)
    }

    /// The store's clock: callers are in step with it.
    fn now_ms(&self) -> i64 {
        machine_ms() + self.ahead_ms.load(Ordering::Relaxed)
    }
}

/// A running load.
pub(crate) struct Load {
    pub(crate) caller: Caller,
    pub(crate) worlds: Vec<World>,
    phase: watch::Sender<Phase>,
    ahead_ms: Arc<AtomicI64>,
    begun: Vec<JoinHandle<()>>,
    lasting: Vec<JoinHandle<()>>,
}

impl Load {
    /// Begins on regions of these names, everything coming so many times more slowly; late regions
    /// come to be after [`Load::beginning`].
    pub(crate) fn begin(
        on: &Handle,
        caller: &Caller,
        regions: &[String],
        late_regions: &[String],
        seed: u64,
        slower: f64,
    ) -> Self {
        let (phase, following) = watch::channel(Phase::Beginning);
        let ahead_ms: Arc<AtomicI64> = Arc::default();
        let mut load = Self {
            caller: caller.clone(),
            worlds: Vec::new(),
            phase,
            ahead_ms: ahead_ms.clone(),
            begun: Vec::new(),
            lasting: Vec::new(),
        };
        for region in regions.iter().chain(late_regions) {
            let world = World {
                caller: caller.clone(),
                region: region.clone(),
                seed,
                slower,
                late: late_regions.contains(region),
                phase: following.clone(),
                ahead_ms: ahead_ms.clone(),
                seen: Arc::default(),
            };
            load.begun.push(on.spawn(riders::come(world.clone())));
            load.begun
                .push(on.spawn(windows::are_asked_for(world.clone())));
            load.lasting
                .push(on.spawn(cars::tell_places(world.clone())));
            load.lasting
                .push(on.spawn(drivers::answer_offers(world.clone())));
            load.worlds.push(world);
        }
        load
    }

    /// Lets ops tune the windows of every region.
    pub(crate) fn tune(&mut self, on: &Handle) {
        for world in &self.worlds {
            self.begun.push(on.spawn(tuning::is_done(world.clone())));
        }
    }

    /// What lets the late regions come to be.
    pub(crate) fn beginning(&self) -> impl FnOnce() + Send + 'static {
        let phase = self.phase.clone();
        move || {
            phase.send_if_modified(|phase| {
                let begins = *phase == Phase::Beginning;
                if begins {
                    *phase = Phase::Loading;
                }
                begins
            });
        }
    }

    /// Says how far the store's clock is ahead of the machine's.
    pub(crate) fn store_is_ahead(&self, us: i64) {
        self.ahead_ms.store(us / 1_000, Ordering::Relaxed);
    }

    /// No more riders come; waits until the last call of theirs is answered.
    pub(crate) async fn end_riders(&mut self) {
        self.phase.send_replace(Phase::Ending);
        for task in self.begun.drain(..) {
            task.await.unwrap();
        }
    }

    /// Ends all.
    pub(crate) async fn end(&mut self) {
        self.phase.send_replace(Phase::Over);
        for task in self.lasting.drain(..) {
            task.await.unwrap();
        }
    }
}

/// A place in the city.
fn place(chance: &mut Chance) -> (f64, f64) {
    (23.75 + 0.02 * chance.unit(), 90.38 + 0.02 * chance.unit())
}
