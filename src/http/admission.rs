//! Admission: how much may be under way at once, for each region and each caller.
//!
//! Each region has permits of its own, and within it each kind of work has: a hot region cannot
//! take another's (INV-11), and a flood of requests cannot keep a confirm waiting. Whoever finds no
//! permit waits a moment, in a line of bounded length; then it is turned away.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    problem::{Code, Problem},
    tokens::Caller,
};
use crate::{domain::RegionId, telemetry};

/// Calls under way of one caller, over all regions.
const CALLER_CALLS: usize = 512;
/// Gates kept before idle ones are dropped.
const KEPT_GATES: usize = 4_096;

/// A kind of work in a region, from the one that must never wait to the one that may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Confirm, release, complete, extend, cancel, tune, reconcile: they end what is under way.
    Claims,
    /// Pings.
    Pings,
    /// New requests and own windows.
    Intake,
    /// Reads.
    Reads,
    /// Event streams and long polls; they stay.
    Followers,
}

/// One kind's permits, how long one waits for them, and how many may wait.
struct Limit {
    permits: usize,
    line: usize,
    patience: Duration,
}

impl Work {
    const ALL: [Self; 5] = [
        Self::Claims,
        Self::Pings,
        Self::Intake,
        Self::Reads,
        Self::Followers,
    ];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claims => "claims",
            Self::Pings => "pings",
            Self::Intake => "intake",
            Self::Reads => "reads",
            Self::Followers => "followers",
        }
    }

    const fn limit(self) -> Limit {
        let (permits, line, patience_ms) = match self {
            Self::Claims => (64, 1_024, 2_000),
            Self::Pings => (16, 256, 1_000),
            Self::Intake => (32, 256, 500),
            Self::Reads => (32, 256, 1_000),
            Self::Followers => (256, 0, 0),
        };
        Limit {
            permits,
            line,
            patience: Duration::from_millis(patience_ms),
        }
    }
}

/// The permits of one kind of work.
struct Gate {
    permits: Arc<Semaphore>,
    waiting: AtomicUsize,
    work: Work,
}

impl Gate {
    fn new(work: Work) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(work.limit().permits)),
            waiting: AtomicUsize::new(0),
            work,
        }
    }

    fn is_idle(&self) -> bool {
        self.permits.available_permits() == self.work.limit().permits
            && self.waiting.load(Ordering::Relaxed) == 0
    }

    async fn enter(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Some(permit);
        }
        let Limit { line, patience, .. } = self.work.limit();
        // a place in the line is given back however the wait ends
        let _place = Place::take(&self.waiting, line)?;
        let permit = Arc::clone(&self.permits).acquire_owned();
        tokio::time::timeout(patience, permit).await.ok()?.ok()
    }
}

struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize, line: usize) -> Option<Self> {
        // counts alone: no other memory is published with them
        let before = waiting.fetch_add(1, Ordering::Relaxed);
        let place = Self(waiting);
        (before < line).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

type RegionGates = Arc<[Gate; 5]>;

/// Who may enter.
#[derive(Default)]
pub struct Admission {
    regions: Mutex<HashMap<RegionId, RegionGates>>,
    callers: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
}

impl std::fmt::Debug for Admission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admission").finish_non_exhaustive()
    }
}

impl Admission {
    /// A permit for one piece of work in a region, held until it is done.
    ///
    /// # Errors
    /// 429 `quota` for followers and reads, 503 `region_full` for the rest, with `Retry-After`.
    pub async fn enter(
        &self,
        region: &RegionId,
        work: Work,
    ) -> Result<OwnedSemaphorePermit, Problem> {
        let gates = self.gates(region);
        let permit = match gates.iter().find(|gate| gate.work == work) {
            Some(gate) => gate.enter().await,
            None => None,
        };
        permit.ok_or_else(|| {
            telemetry::shed(region, work.name());
            let code = match work {
                Work::Followers | Work::Reads => Code::Quota,
                Work::Claims | Work::Pings | Work::Intake => Code::RegionFull,
            };
            let detail = format!(
                "as many {} as may be are under way in {region}",
                work.name()
            );
            Problem::new(code, detail)
        })
    }

    /// A slot for one call of a caller.
    pub(crate) fn caller(&self, caller: &Caller) -> Option<OwnedSemaphorePermit> {
        let mut callers = self.callers.lock();
        drop_idle(&mut callers, |slots| {
            slots.available_permits() == CALLER_CALLS
        });
        let slots = callers
            .entry(Arc::clone(&caller.name))
            .or_insert_with(|| Arc::new(Semaphore::new(CALLER_CALLS)));
        Arc::clone(slots).try_acquire_owned().ok()
    }

    fn gates(&self, region: &RegionId) -> RegionGates {
        let mut regions = self.regions.lock();
        if let Some(gates) = regions.get(region) {
            return Arc::clone(gates);
        }
        // somebody who holds the gates but not yet a permit keeps them from being dropped
        drop_idle(&mut regions, |gates| {
            Arc::strong_count(gates) == 1 && gates.iter().all(Gate::is_idle)
        });
        let gates: RegionGates = Arc::new(Work::ALL.map(Gate::new));
        regions.insert(region.clone(), Arc::clone(&gates));
        gates
    }
}

fn drop_idle<K: Eq + Hash, V>(kept: &mut HashMap<K, V>, is_idle: impl Fn(&V) -> bool) {
    if kept.len() >= KEPT_GATES {
        kept.retain(|_, value| !is_idle(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(name: &str) -> RegionId {
        RegionId::new(name).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_hot_region_keeps_neither_its_claims_nor_another_region_waiting() {
        let admission = Admission::default();
        let (dhaka, sylhet) = (region("dhaka"), region("sylhet"));
        let mut held = Vec::new();
        for _ in 0..Work::Intake.limit().permits {
            held.push(admission.enter(&dhaka, Work::Intake).await.unwrap());
        }
        let refused = admission.enter(&dhaka, Work::Intake).await.unwrap_err();
        assert_eq!(refused.code(), Code::RegionFull);
        assert!(admission.enter(&dhaka, Work::Claims).await.is_ok());
        assert!(admission.enter(&sylhet, Work::Intake).await.is_ok());
        held.pop();
        assert!(admission.enter(&dhaka, Work::Intake).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_call_enters_when_another_leaves_and_the_line_is_bounded() {
        let admission = Arc::new(Admission::default());
        let dhaka = region("dhaka");
        let Limit { permits, line, .. } = Work::Intake.limit();
        let mut held = Vec::new();
        for _ in 0..permits {
            held.push(admission.enter(&dhaka, Work::Intake).await.unwrap());
        }
        let waiting: Vec<_> = (0..line)
            .map(|_| {
                let (admission, dhaka) = (Arc::clone(&admission), dhaka.clone());
                tokio::spawn(async move { admission.enter(&dhaka, Work::Intake).await.is_ok() })
            })
            .collect();
        tokio::task::yield_now().await;
        let before = tokio::time::Instant::now();
        assert!(admission.enter(&dhaka, Work::Intake).await.is_err());
        assert_eq!(before.elapsed(), Duration::ZERO);
        drop(held);
        for entered in waiting {
            assert!(entered.await.unwrap());
        }
    }

    #[tokio::test]
    async fn idle_gates_are_dropped_when_there_are_many() {
        let admission = Admission::default();
        for i in 0..3 * KEPT_GATES {
            let region = region(&format!("r{i}"));
            drop(admission.enter(&region, Work::Reads).await.unwrap());
        }
        assert!(admission.regions.lock().len() <= KEPT_GATES);
    }
}
