//! The state of one region, and the step that changes it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    driver::DriverRecord,
    due::DueSet,
    generation::{GenerationChanged, StoreContext},
    leadership::Leadership,
    mutation::Mutation,
    operations::{Answer, Command},
    outbox::{Event, Outbox},
    own_window::OwnWindow,
    reconcile::Reconciling,
    report::Reports,
    request::RequestRecord,
    rules::RegionRules,
    window::WindowRecord,
};
use crate::domain::{
    ConfigVersion, DriverId, EventId, Fence, Generation, RegionId, RequestId, StoreTime, Take,
    UnixMs, WindowId, WindowSeq,
};

/// Breaches that a step refused to make; each stays 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Counters {
    /// INV-1: claims of a driver or request that had one.
    pub double_claims: u64,
    /// INV-2: fences that did not rise.
    pub fences_not_risen: u64,
}

/// Everything that a store holds of one region. Cheap to hash and to compare; cloning costs its
/// size. It changes by [`Region::apply`] alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Region {
    pub(crate) id: RegionId,
    pub(crate) rules: RegionRules,
    pub(crate) document: Arc<str>,
    pub(crate) config_version: ConfigVersion,
    pub(crate) generation: Generation,
    pub(crate) store_id: Arc<str>,
    pub(crate) quarantined_until_ms: Option<UnixMs>,
    pub(crate) reconciling: Reconciling,
    pub(crate) fence: Fence,
    pub(crate) takes: Take,
    pub(crate) leadership: Leadership,
    pub(crate) drivers: BTreeMap<DriverId, DriverRecord>,
    pub(crate) requests: BTreeMap<RequestId, RequestRecord>,
    /// Pending requests, oldest first.
    pub(crate) pending: BTreeSet<(UnixMs, RequestId)>,
    pub(crate) due: DueSet,
    pub(crate) anchor: Option<UnixMs>,
    pub(crate) last_window: WindowSeq,
    /// Unsealed windows, oldest first.
    pub(crate) windows: BTreeMap<WindowSeq, WindowRecord>,
    pub(crate) reports: Reports,
    pub(crate) own_windows: BTreeMap<WindowId, OwnWindow>,
    pub(crate) outbox: Outbox,
    pub(crate) counters: Counters,
    #[cfg(any(test, feature = "mutants"))]
    pub(crate) mutation: Option<Mutation>,
}

/// The answer of a step, and what it tells the world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// To the caller.
    pub answer: Answer,
    /// To everybody: the events published in this step, in order.
    pub events: Vec<Event>,
}

impl Region {
    /// A region that has just come to be: never in quarantine.
    pub fn fresh(
        id: RegionId,
        rules: RegionRules,
        document: Arc<str>,
        context: &StoreContext,
    ) -> Self {
        Self {
            id,
            rules,
            document,
            config_version: ConfigVersion::new(1),
            generation: Generation::default().rise(context.now),
            store_id: Arc::clone(&context.store_id),
            quarantined_until_ms: None,
            reconciling: Reconciling::Idle,
            fence: Fence::default(),
            takes: Take::default(),
            leadership: Leadership::default(),
            drivers: BTreeMap::new(),
            requests: BTreeMap::new(),
            pending: BTreeSet::new(),
            due: DueSet::default(),
            anchor: None,
            last_window: WindowSeq::default(),
            windows: BTreeMap::new(),
            reports: Reports::default(),
            own_windows: BTreeMap::new(),
            outbox: Outbox::default(),
            counters: Counters::default(),
            #[cfg(any(test, feature = "mutants"))]
            mutation: None,
        }
    }

    /// One step: compares the generation, executes the command, publishes its events.
    ///
    /// Pure: the same state, command and context give the same state, answer and events. Bounded
    /// by the limits in [`super::rules`].
    ///
    /// # Errors
    /// [`GenerationChanged`]: the command was not executed. Repeat it if it still makes sense.
    pub fn apply(
        &mut self,
        command: Command,
        context: &StoreContext,
    ) -> Result<Answer, GenerationChanged> {
        self.guard(context)?;
        let now = context.now;
        Ok(match command {
            Command::Ping(input) => Answer::Ping(self.ping(input, now)),
            Command::RemoveDriver(input) => Answer::RemoveDriver(self.remove_driver(&input, now)),
            Command::Intake(input) => Answer::Intake(self.intake(input, now)),
            Command::Cancel(input) => Answer::Cancel(self.cancel(&input, now)),
            Command::Confirm(input) => Answer::Confirm(self.confirm(&input, now)),
            Command::Release(input) => Answer::Release(self.release(&input, now)),
            Command::Complete(input) => Answer::Complete(self.complete(&input, now)),
            Command::Extend(input) => Answer::Extend(self.extend(&input, now)),
            Command::TakeWindow(input) => Answer::TakeWindow(self.take_window(&input, now)),
            Command::ClaimBatch(input) => Answer::ClaimBatch(self.claim_batch(&input, now)),
            Command::Seal(input) => Answer::Seal(self.seal(input, now)),
            Command::BeginOwn(input) => Answer::BeginOwn(self.begin_own(&input, now)),
            Command::ClaimOwn(input) => Answer::ClaimOwn(self.claim_own(&input, now)),
            Command::FinishOwn(input) => Answer::FinishOwn(self.finish_own(&input, now)),
            Command::Acquire(input) => Answer::Acquire(self.acquire(&input, now)),
            Command::Renew(input) => Answer::Renew(self.renew(&input, now)),
            Command::Resign(input) => Answer::Resign(self.resign(&input)),
            Command::Configure(input) => Answer::Configure(self.configure(input, now)),
            Command::Reconcile(input) => Answer::Reconcile(self.reconcile(input, now)),
            Command::Sweep(_) => Answer::Sweep(self.sweep(now)),
        })
    }

    /// [`Region::apply`] as a function: `(state, command, now) → (state, effects)`.
    ///
    /// # Errors
    /// As [`Region::apply`]; the state with the changed generation comes back in both cases.
    pub fn step(
        mut self,
        command: Command,
        context: &StoreContext,
    ) -> (Self, Result<Step, GenerationChanged>) {
        let before = self.outbox.last();
        let answer = self.apply(command, context);
        let step = answer.map(|answer| Step {
            answer,
            events: self.outbox.since(before).cloned().collect(),
        });
        (self, step)
    }

    /// The region's id.
    pub fn id(&self) -> &RegionId {
        &self.id
    }

    /// The rules in force.
    pub fn rules(&self) -> &RegionRules {
        &self.rules
    }

    /// The life of the data.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// The last fence given out.
    pub fn last_fence(&self) -> Fence {
        self.fence
    }

    /// The last window that was opened.
    pub fn last_window(&self) -> WindowSeq {
        self.last_window
    }

    /// The newest event.
    pub fn last_event(&self) -> EventId {
        self.outbox.last()
    }

    /// The unsealed windows, oldest first.
    pub fn windows(&self) -> impl Iterator<Item = &WindowRecord> {
        self.windows.values()
    }

    /// The next instant at which something ends by itself.
    pub fn next_due(&self) -> Option<UnixMs> {
        self.due.next()
    }

    /// The outbox.
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Drops the kept events, for checkers whose state must not grow with history.
    pub fn forget_events(&mut self) {
        self.outbox.forget();
    }

    /// Breaches refused so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The drivers' records.
    pub fn drivers(&self) -> &BTreeMap<DriverId, DriverRecord> {
        &self.drivers
    }

    /// The requests' records.
    pub fn requests(&self) -> &BTreeMap<RequestId, RequestRecord> {
        &self.requests
    }

    /// The sealed windows.
    pub fn reports(&self) -> &Reports {
        &self.reports
    }

    /// Plants a bug.
    #[cfg(any(test, feature = "mutants"))]
    pub fn plant(&mut self, mutation: Mutation) {
        self.mutation = Some(mutation);
    }

    /// Whether a bug is planted; never outside tests.
    #[cfg(any(test, feature = "mutants"))]
    pub(crate) fn has(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// Whether a bug is planted; never outside tests.
    #[cfg(not(any(test, feature = "mutants")))]
    #[expect(clippy::unused_self, reason = "the planted variant reads it")]
    pub(crate) const fn has(&self, _mutation: Mutation) -> bool {
        false
    }

    pub(crate) fn publish(&mut self, event: Event, now: StoreTime) {
        self.outbox.publish(event, now.ms());
    }
}
