//! The promises as checks of one step: what was, what was asked, what was answered, what is.
//!
//! The state before the step stands for all history: the books are opened from it, since the step
//! before was shown to leave books and state alike. What no state remembers after a loss of data,
//! the highest versions ever given out, is carried along as [`Given`].

use super::given::Given;
use crate::{
    domain::{DriverId, Fence, StoreTime},
    protocol::{
        Answer, ClaimKey, Command, Event, EventType, GenerationChanged, Ledger, OwnPhase, Reason,
        Region, RequestDraft, RequestState, Source,
        history::History,
        invariants::{self, Breach, Invariant, hold},
        rules::{CONFIRM_MARGIN_MS, MAX_LEASE_MS},
    },
};

/// One step, to be looked at.
pub(super) struct Look<'a> {
    pub(super) before: &'a Region,
    pub(super) given: &'a Given,
    pub(super) command: &'a Command,
    pub(super) answer: Result<&'a Answer, &'a GenerationChanged>,
    pub(super) events: &'a [Event],
    pub(super) after: &'a Region,
    pub(super) now: StoreTime,
}

impl Look<'_> {
    /// Every check.
    ///
    /// # Errors
    /// The first promise broken.
    pub(super) fn check(&self) -> Result<(), Breach> {
        self.books_equal_the_state()?;
        let Ok(answer) = self.answer else {
            return self.only_the_generation_changed();
        };
        for event in self.events {
            self.check_event(event)?;
        }
        self.check_requests()?;
        self.check_presence()?;
        self.check_windows()?;
        self.check_answer(answer)
    }

    /// INV-1, 2, 3, 6, 7, 8: the events of the step, booked onto the state before, give the state
    /// after.
    fn books_equal_the_state(&self) -> Result<(), Breach> {
        let mut ledger = self.books_before();
        for event in self.events {
            ledger.book(event)?;
        }
        let memory = self.after.rules().request_memory_ms;
        for (id, before) in self.before.requests() {
            if !self.after.requests().contains_key(id) {
                let old = before
                    .ended_at_ms
                    .is_some_and(|at| at + memory <= self.now.ms());
                hold!(Inv6, old, "request {id} was forgotten");
                ledger.forget(id);
            }
        }
        invariants::check(self.after, &ledger)
    }

    fn books_before(&self) -> Ledger {
        let mut history = History::default();
        history.lost(self.before);
        let mut ledger = history.ledger;
        ledger.fence = self.given.fence;
        ledger
    }

    /// A step that finds another generation changes nothing else, and begins above all before.
    fn only_the_generation_changed(&self) -> Result<(), Breach> {
        let (before, after) = (self.before, self.after);
        let same = before.drivers() == after.drivers()
            && before.requests() == after.requests()
            && before.pending == after.pending
            && before.windows == after.windows
            && before.reports() == after.reports()
            && before.own_windows == after.own_windows
            && before.rules() == after.rules();
        hold!(
            Inv4,
            same,
            "a refused step changed more than the generation"
        );
        if before.generation() != after.generation() {
            // a message from before may begin one below the newest, and serves nobody in it: who
            // knows the newest begins the next above it
            let risen = after.generation() > before.generation()
                && after.generation() != self.given.generation;
            hold!(
                Inv4,
                risen,
                "generation {} after {}",
                after.generation(),
                self.given.generation
            );
            let quarantined = after.quarantine(self.now).is_some();
            hold!(Inv4, quarantined, "a new generation without quarantine");
        }
        Ok(())
    }

    fn check_event(&self, event: &Event) -> Result<(), Breach> {
        let (Some(driver), Some(request), Some(fence)) =
            (&event.driver_id, &event.request_id, event.fence)
        else {
            return self.check_end(event);
        };
        let named = |key: &ClaimKey| {
            key.driver_id == *driver && key.request_id == *request && key.fence == fence
        };
        let itself = matches!(event.reason, Some(Reason::TripTimeout | Reason::Reconciled));
        match event.kind {
            EventType::Assigned => self.check_offer(event, driver, fence),
            EventType::Confirmed if event.reason == Some(Reason::Reconciled) => {
                self.check_fence(fence)
            }
            EventType::Confirmed => {
                let by = matches!(self.command, Command::Confirm(call) if named(&call.claim));
                hold!(Inv3, by, "confirmed by {:?}: {event:?}", self.command);
                let lease = self.before.drivers().get(driver);
                let live = lease
                    .and_then(|record| record.claim.as_ref())
                    .is_some_and(|claim| self.now.ms() < claim.ends_at());
                hold!(Inv3, live, "confirmed after the lease: {event:?}");
                Ok(())
            }
            EventType::Released => {
                let by = matches!(self.command, Command::Release(call) if named(&call.claim));
                hold!(Inv3, by, "released by {:?}: {event:?}", self.command);
                Ok(())
            }
            EventType::Completed => {
                let by = matches!(self.command, Command::Complete(call) if named(&call.claim));
                hold!(Inv3, by || itself, "completed by {:?}", self.command);
                Ok(())
            }
            EventType::Cancelled => {
                let by =
                    matches!(self.command, Command::Cancel(call) if call.request_id == *request);
                hold!(Inv6, by, "cancelled by {:?}", self.command);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// INV-6: a request expires after its deadline, and is taken in where requests are.
    fn check_end(&self, event: &Event) -> Result<(), Breach> {
        let Some(id) = &event.request_id else {
            return Ok(());
        };
        let record = self.after.requests().get(id);
        match event.kind {
            EventType::Expired => {
                let late = record.is_some_and(|r| self.now.ms() > r.deadline_ms);
                hold!(Inv6, late, "request {id} expired before its deadline");
            }
            EventType::Requested => {
                let told = matches!(self.command, Command::Reconcile(_));
                let open = self.before.quarantine(self.now).is_none();
                hold!(Inv6, told || open, "request {id} was taken in a quarantine");
            }
            EventType::Cancelled => {
                let by = matches!(self.command, Command::Cancel(call) if call.request_id == *id);
                hold!(Inv6, by, "cancelled by {:?}", self.command);
            }
            _ => {}
        }
        Ok(())
    }

    /// INV-2: max(last + 1, the store's clock), and above every fence that any primary gave out.
    fn check_fence(&self, fence: Fence) -> Result<(), Breach> {
        let above = fence > self.given.fence && fence.get() >= self.now.micros();
        hold!(
            Inv2,
            above,
            "fence {fence} after {} at {}",
            self.given.fence,
            self.now.micros()
        );
        Ok(())
    }

    /// INV-4: an offer is made for the owner of a window, outside of quarantines, within the rails,
    /// to a pair that is not kept apart.
    fn check_offer(&self, event: &Event, driver: &DriverId, fence: Fence) -> Result<(), Breach> {
        self.check_fence(fence)?;
        let quarantined = self.before.quarantine(self.now).is_some();
        hold!(Inv4, !quarantined, "a claim in a quarantine: {event:?}");
        let by_owner = match self.command {
            Command::ClaimBatch(batch) => {
                event.source != Some(Source::Own) && self.owns(batch.window_seq, batch.owner)
            }
            Command::ClaimOwn(batch) => {
                let own = self.before.own_windows.get(&batch.window_id);
                event.source == Some(Source::Own)
                    && own.is_some_and(|own| {
                        matches!(own.phase, OwnPhase::Running { runner, .. } if runner == batch.runner)
                    })
            }
            _ => false,
        };
        hold!(Inv4, by_owner, "claimed by {:?}", self.command);
        let lease_ms = event.lease_ms.unwrap_or_default();
        let rails = self.after.rules().offer_window_ms + CONFIRM_MARGIN_MS;
        let within = (rails..=MAX_LEASE_MS).contains(&lease_ms);
        hold!(Inv3, within, "a lease of {lease_ms} ms: {event:?}");
        let apart = event.request_id.as_ref().is_some_and(|request| {
            let rider = self.after.requests().get(request).and_then(|r| r.rider());
            let record = self.after.drivers().get(driver);
            record.is_some_and(|r| r.cools_down(request, rider, self.now.ms()))
        });
        hold!(Inv3, !apart, "a pair that is kept apart: {event:?}");
        Ok(())
    }

    /// INV-6: a request ends once, keeps its age, and does not wait after its deadline.
    fn check_requests(&self) -> Result<(), Breach> {
        for (id, after) in self.after.requests() {
            let Some(before) = self.before.requests().get(id) else {
                continue;
            };
            // what came by an own window leaves the region when its driver does, and may come again
            let again = before.state == RequestState::Released || before.own_window.is_some();
            let ended = before.state.is_final() && !again;
            let restored = matches!(self.command, Command::Reconcile(_));
            hold!(
                Inv6,
                !ended || after.state == before.state || restored,
                "request {id} was {:?} and is {:?}",
                before.state,
                after.state
            );
            let same_age = again || before.requested_at_ms == after.requested_at_ms;
            hold!(Inv6, same_age, "request {id} waits since another time");
            let returned = before.state == RequestState::Assigned
                && after.state == RequestState::Pending
                && self.now.ms() > after.deadline_ms;
            hold!(Inv6, !returned, "request {id} waits on after its deadline");
        }
        Ok(())
    }

    /// A newer ping is never overwritten, and a driver that was taken offline stays away.
    fn check_presence(&self) -> Result<(), Breach> {
        for (id, before) in self.before.drivers() {
            let at = |region: &Region| {
                let presence = region.drivers().get(id)?.presence.clone()?;
                Some((presence.at_ms, presence.status))
            };
            let (was, is) = (before.presence.as_ref().map(|p| p.at_ms), at(self.after));
            // a record that goes takes its presence along; what must stay away stands below
            let newer = is.is_none_or(|(at_ms, _)| was <= Some(at_ms));
            hold!(Inv3, newer, "driver {id} went back from {was:?} to {is:?}");
        }
        for (id, removed) in &self.given.removed {
            let back = self.after.drivers().get(id).is_some_and(|record| {
                record
                    .presence
                    .as_ref()
                    .is_some_and(|p| p.at_ms <= *removed && record.is_ready())
            });
            hold!(Inv3, !back, "driver {id} came back by an old ping");
        }
        Ok(())
    }

    /// INV-4 and INV-5: what an answer grants, the state before the step allowed.
    fn check_answer(&self, answer: &Answer) -> Result<(), Breach> {
        let quarantined = self.before.quarantine(self.now).is_some();
        match (self.command, answer) {
            (Command::Intake(intake), Answer::Intake(Ok(taken))) => {
                hold!(Inv6, !quarantined, "requests were taken in a quarantine");
                for entry in &taken.requests {
                    let draft = intake.requests.iter().find(|draft| draft.id == entry.id);
                    let known = self.before.requests().get(&entry.id);
                    let kept = known.filter(|r| r.state != RequestState::Released);
                    let same = kept.is_none_or(|record| {
                        entry.replayed
                            && record.intake == Some(entry.place)
                            && draft.map(RequestDraft::fingerprint) == record.fingerprint
                    });
                    hold!(Inv6, same, "request {} got another's answer", entry.id);
                }
                Ok(())
            }
            (Command::TakeWindow(take), Answer::TakeWindow(Ok(taken))) => {
                hold!(Inv4, !quarantined, "a window was taken in a quarantine");
                self.check_take(take, taken.owner)
            }
            (Command::ClaimBatch(batch), Answer::ClaimBatch(Ok(_))) => {
                let owns = self.owns(batch.window_seq, batch.owner);
                hold!(Inv4, owns, "a stale batch was served: {batch:?}");
                Ok(())
            }
            (Command::Seal(seal), Answer::Seal(Ok(report))) => {
                let first = self.before.reports().get(seal.window_seq);
                let allowed = match first {
                    Some(first) => first.owner == Some(seal.owner) && first.report == *report,
                    None => self.owns(seal.window_seq, seal.owner),
                };
                hold!(Inv4, allowed, "a stale seal was served: {seal:?}");
                Ok(())
            }
            (Command::BeginOwn(begin), Answer::BeginOwn(Ok(_))) => {
                hold!(Inv4, !quarantined, "an own window in a quarantine");
                let known = self.before.own_windows.get(&begin.window_id);
                let same = known.is_none_or(|own| own.fingerprint == begin.fingerprint);
                hold!(Inv6, same, "another body got an own window's answer");
                Ok(())
            }
            _ => self.check_leadership(answer),
        }
    }
}
