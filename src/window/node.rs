//! A node: looks after every region of its store, leads those it can.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::watch, task::JoinHandle};

use super::{
    ahead::SharedMemory,
    decider::Decider,
    leader::{self, RegionContext},
    level::ServedLevel,
    watch as missed,
};
use crate::{
    demand::DemandModel,
    domain::{DurationMs, NodeId, RegionId, WindowSeq},
    http::{Level, OwnWindowCall, OwnWindowFuture, WindowRuntime},
    leadership::{self, Duty, Lead, LeaseTimes, share_of},
    record::Recorder,
    store::{RegionSignal, Store},
};

/// What a node needs.
pub struct NodeOptions {
    /// Its name.
    pub node: NodeId,
    /// Where the regions live.
    pub store: Arc<dyn Store>,
    /// Who decides windows.
    pub decider: Arc<dyn Decider>,
    /// Times of its leaderships.
    pub times: LeaseTimes,
    /// Where decided windows are recorded, if anywhere.
    pub recorder: Option<Recorder>,
    /// Learned demand of regions that look ahead; in the others the pickups of late stand for the next.
    pub demand_models: BTreeMap<RegionId, Arc<DemandModel>>,
}

/// A running node. It works until [`Node::finish`].
pub struct Node {
    pub(super) options: NodeOptions,
    stop: watch::Sender<bool>,
    served: Mutex<BTreeMap<RegionId, Served>>,
    following: Mutex<Option<JoinHandle<()>>>,
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
}

/// The runtimes that no solve and no route can hold up.
struct Runtimes {
    watch: Handle,
    lease: Handle,
}

/// A thread with a runtime of its own, which lives until `stop` turns true and a little longer, so
/// that its tasks can end in order.
fn own_thread(
    name: &str,
    mut stop: watch::Receiver<bool>,
) -> std::io::Result<(thread::JoinHandle<()>, Handle)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let handle = runtime.handle().clone();
    let thread = thread::Builder::new().name(name.into()).spawn(move || {
        runtime.block_on(async {
            let _ = stop.wait_for(|stop| *stop).await;
            tokio::time::sleep(Duration::from_millis(200)).await;
        });
    })?;
    Ok((thread, handle))
}

/// What a node knows of a region it serves.
struct Served {
    duty: Arc<Duty>,
    lead: watch::Receiver<Option<Lead>>,
    level: Arc<ServedLevel>,
}

/// Time between two looks for regions that another node's calls brought about, and for nodes.
const LOOK_AROUND: Duration = Duration::from_secs(1);

/// How long a node counts as alive that is not heard of: three looks, and less than a lease, so
/// that its share is spread anew when its leaderships end.
const LIFE: DurationMs = DurationMs::new(3_000);

impl Node {
    /// Starts a node on the present runtime, its watch on a thread and runtime of its own.
    ///
    /// # Errors
    /// The thread or its runtime could not be made.
    pub fn start(options: NodeOptions) -> std::io::Result<Arc<Self>> {
        let (stop, stopped) = watch::channel(false);
        // renewals have a thread of their own, and so has the watch: neither waits for the other
        let (watching, watch_runtime) = own_thread("kheya-watch", stopped.clone())?;
        let (leasing, lease_runtime) = own_thread("kheya-lease", stopped.clone())?;
        let runtimes = Runtimes {
            watch: watch_runtime,
            lease: lease_runtime,
        };
        let node = Arc::new(Self {
            options,
            stop,
            served: Mutex::default(),
            following: Mutex::new(None),
            threads: Mutex::new(vec![watching, leasing]),
        });
        let follower = node.clone();
        let following = tokio::spawn(async move {
            follower.follow_regions(&runtimes, stopped).await;
        });
        *node.following.lock() = Some(following);
        Ok(node)
    }

    /// Whether this node leads a region at this moment.
    pub fn leads(&self, region: &RegionId) -> bool {
        let served = self.served.lock();
        served
            .get(region)
            .is_some_and(|served| served.lead.borrow().is_some_and(|lead| lead.holds()))
    }

    /// Lets open windows come to their end, as long as that takes no longer than `within`, then
    /// resigns and stops. Intake must have stopped before.
    pub async fn finish(&self, within: Duration) {
        let give_up = Instant::now() + within;
        let open = self.open_windows().await;
        while Instant::now() < give_up && self.any_unsealed(&open).await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.stop.send_replace(true);
        let following = self.following.lock().take();
        if let Some(following) = following {
            let _ = following.await;
        }
        let threads = std::mem::take(&mut *self.threads.lock());
        let _ = tokio::task::spawn_blocking(move || {
            for thread in threads {
                let _ = thread.join();
            }
        })
        .await;
    }

    /// The window that each region collects or decides at present.
    async fn open_windows(&self) -> Vec<(RegionId, WindowSeq)> {
        let regions: Vec<RegionId> = self.served.lock().keys().cloned().collect();
        let mut open = Vec::new();
        for region in regions {
            if let Ok(signal) = self.options.store.watch(&region).await
                && let Some(window) = signal.borrow().window
            {
                open.push((region, window.seq));
            }
        }
        open
    }

    /// Whether one of these windows is not sealed. What they leave over opens later ones, which are
    /// not waited for.
    async fn any_unsealed(&self, windows: &[(RegionId, WindowSeq)]) -> bool {
        for (region, seq) in windows {
            if let Ok(signal) = self.options.store.watch(region).await {
                let RegionSignal { lost, window, .. } = *signal.borrow();
                // nobody can seal a window of a store that is out of reach
                if !lost && window.is_some_and(|window| window.seq <= *seq) {
                    return true;
                }
            }
        }
        false
    }

    async fn follow_regions(&self, runtimes: &Runtimes, mut stop: watch::Receiver<bool>) {
        let NodeOptions { node, store, .. } = &self.options;
        let mut count = store.watch_regions();
        // alone until the others are heard of
        let mut nodes = BTreeSet::from([node.clone()]);
        while !*stop.borrow() {
            count.borrow_and_update();
            if let Ok(regions) = store.regions().await {
                for region in regions {
                    self.serve_region(region, runtimes).await;
                }
            }
            // while nobody can be heard of, the shares stay as they were
            if let Ok(alive) = store.alive(node, LIFE).await {
                nodes = alive.into_iter().chain([node.clone()]).collect();
            }
            self.take_share(&nodes);
            tokio::select! {
                changed = count.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(LOOK_AROUND) => {}
                _ = stop.changed() => {}
            }
        }
        // the others need not wait until this node is missed
        let _ = store.alive(node, DurationMs::ZERO).await;
    }

    /// Wants the regions that are this node's share among `nodes`.
    fn take_share(&self, nodes: &BTreeSet<NodeId>) {
        let served = self.served.lock();
        let regions: BTreeSet<RegionId> = served.keys().cloned().collect();
        let share = share_of(&self.options.node, &regions, nodes);
        for (region, served) in served.iter() {
            served.duty.want(share.contains(region));
        }
    }

    async fn serve_region(&self, region: RegionId, runtimes: &Runtimes) {
        if self.served.lock().contains_key(&region) {
            return;
        }
        let Ok(signal) = self.options.store.watch(&region).await else {
            return;
        };
        let held = Arc::new(watch::Sender::new(None));
        let level = Arc::new(ServedLevel::default());
        let duty = Arc::new(Duty::default());
        let served = Served {
            duty: duty.clone(),
            lead: held.subscribe(),
            level: level.clone(),
        };
        self.served.lock().insert(region.clone(), served);
        self.spawn_tasks(region, signal, held, duty, level, runtimes);
    }

    fn spawn_tasks(
        &self,
        region: RegionId,
        signal: watch::Receiver<RegionSignal>,
        held: Arc<watch::Sender<Option<Lead>>>,
        duty: Arc<Duty>,
        level: Arc<ServedLevel>,
        runtimes: &Runtimes,
    ) {
        let NodeOptions {
            node,
            store,
            decider,
            times,
            recorder,
            demand_models,
        } = &self.options;
        let context = RegionContext {
            store: store.clone(),
            region: region.clone(),
            decider: decider.clone(),
            clock: store.clock(&region),
            recorder: recorder.clone(),
            duty: duty.clone(),
            level,
            demand_model: demand_models.get(&region).cloned(),
            ahead: SharedMemory::default(),
        };
        let stop = || self.stop.subscribe();
        tokio::spawn(leader::lead(
            context.clone(),
            signal.clone(),
            held.subscribe(),
            stop(),
        ));
        let leads = held.subscribe();
        runtimes.lease.spawn(leadership::hold(
            store.clone(),
            region,
            node.clone(),
            *times,
            duty,
            held,
            stop(),
        ));
        runtimes.watch.spawn(missed::take_over_missed(
            context.clone(),
            signal.clone(),
            stop(),
        ));
        runtimes
            .watch
            .spawn(missed::sweep_due(context, signal, leads, stop()));
    }
}

impl WindowRuntime for Node {
    fn level(&self, region: &RegionId) -> Level {
        let served = self.served.lock();
        served
            .get(region)
            .map_or(Level::BatchStraightLine, |served| served.level.load())
    }

    fn solve_own<'a>(&'a self, region: &'a RegionId, call: OwnWindowCall) -> OwnWindowFuture<'a> {
        Box::pin(self.solve_own_window(region, call))
    }
}
