//! The history of a region: what was asked and answered, checked after every step.
//!
//! Beside [`super::invariants`], which look at one state, this looks across steps: repeats get their
//! first answer, owners that were replaced are refused, leases and cool-downs are kept, a removed
//! driver stays away.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    claim::ClaimKey,
    claim_batch::BatchAnswer,
    claim_calls::ClaimAnswer,
    driver::DriverStatus,
    invariants::{self, Breach, Invariant, hold},
    ledger::Ledger,
    operations::{Answer, Command},
    outbox::{Event, EventType, Reason},
    own_window::OwnBegun,
    region::Region,
    report::WindowReport,
    request::{Fingerprint, RequestState, Taken},
    rules::{CONFIRM_MARGIN_MS, MAX_LEASE_MS},
    window::{Holder, Owner, TakeWindow, TakenWindow, Taker, WindowPhase, WindowRecord},
};
use crate::domain::{
    DriverId, DurationMs, Epoch, Fence, Nonce, RequestId, RiderId, StoreTime, UnixMs, WindowId,
    WindowSeq,
};

/// Everything of a region's past that a later step must agree with.
#[derive(Debug, Default)]
pub struct History {
    /// The books, from the events.
    pub ledger: Ledger,
    claims: BTreeMap<(&'static str, DriverId, RequestId, Fence), ClaimAnswer>,
    batches: BTreeMap<(WindowSeq, u32), (Owner, Arc<BatchAnswer>)>,
    owners: BTreeMap<WindowSeq, Owner>,
    seals: BTreeMap<WindowSeq, (Owner, Arc<WindowReport>)>,
    intake: BTreeMap<RequestId, (Fingerprint, Taken)>,
    ages: BTreeMap<RequestId, UnixMs>,
    own: BTreeMap<WindowId, (Fingerprint, Option<Arc<str>>)>,
    removed: BTreeMap<DriverId, (UnixMs, UnixMs)>,
    apart: Vec<(DriverId, RequestId, Option<RiderId>, UnixMs)>,
    leader: Option<(Epoch, Nonce, UnixMs)>,
    /// Steps checked.
    pub steps: u64,
    /// Calls that were answered before and were asked again.
    pub repeats: u64,
    /// Calls of owners that had been replaced.
    pub stale: u64,
}

/// What must be looked at before a step, because the step may change it.
#[derive(Debug)]
pub struct Before {
    known: Vec<RequestId>,
    pings: BTreeMap<DriverId, UnixMs>,
    overdue: Option<UnixMs>,
    own: Option<Fingerprint>,
}

impl Before {
    /// Looks at a region before a command.
    pub fn look(region: &Region, command: &Command) -> Self {
        Self {
            known: match command {
                Command::Intake(intake) => intake
                    .requests
                    .iter()
                    .filter(|draft| region.requests().contains_key(&draft.id))
                    .map(|draft| draft.id.clone())
                    .collect(),
                _ => Vec::new(),
            },
            pings: region
                .drivers()
                .iter()
                .filter_map(|(id, d)| d.presence.as_ref().map(|p| (id.clone(), p.at_ms)))
                .collect(),
            overdue: match command {
                Command::TakeWindow(take) => region
                    .windows
                    .get(&take.window_seq)
                    .map(WindowRecord::overdue_at),
                _ => None,
            },
            own: match command {
                Command::BeginOwn(begin) => region
                    .own_windows
                    .get(&begin.window_id)
                    .map(|own| own.fingerprint),
                _ => None,
            },
        }
    }
}

impl History {
    /// Checks a step that was executed.
    ///
    /// # Errors
    /// The promise that it broke.
    pub fn check(
        &mut self,
        before: &Before,
        command: &Command,
        answer: &Answer,
        events: &[Event],
        after: &Region,
        now: StoreTime,
    ) -> Result<(), Breach> {
        self.steps += 1;
        for event in events {
            self.forget_old(event, after, now);
            self.check_event(command, event, after, now)?;
            self.ledger.book(event)?;
        }
        let forgotten: Vec<RequestId> = self
            .ledger
            .requests
            .keys()
            .filter(|id| !after.requests().contains_key(*id))
            .cloned()
            .collect();
        for id in forgotten {
            let told = self.ledger.requests.get(&id);
            let memory = after.rules().request_memory_ms;
            hold!(
                Inv6,
                told.is_some_and(|t| t.state.is_final() && t.changed_ms + memory <= now.ms()),
                "request {id} was forgotten while {told:?}"
            );
            self.ledger.forget(&id);
            self.intake.remove(&id);
            self.ages.remove(&id);
        }
        invariants::check(after, &self.ledger)?;
        self.check_ages(after)?;
        check_returned(events, after, now)?;
        self.check_pings(before, after, now)?;
        self.check_answer(before, command, answer, after, now)
    }

    /// A store lost its tail: what it still holds is where the books go on from.
    pub fn lost(&mut self, after: &Region) {
        let fence = self.ledger.fence;
        self.ledger = Ledger::default();
        self.ledger.fence = fence;
        self.ledger.last = after.last_event();
        for (id, driver) in after.drivers() {
            if let Some(claim) = &driver.claim {
                let lease = match claim.phase {
                    super::claim::ClaimPhase::Offered { lease_until_ms, .. } => {
                        Some(lease_until_ms)
                    }
                    super::claim::ClaimPhase::OnTrip { .. } => None,
                };
                self.ledger.drivers.insert(
                    id.clone(),
                    super::ledger::HeldClaim {
                        request_id: claim.request_id.clone(),
                        fence: claim.fence,
                        lease_until_ms: lease,
                        on_trip: lease.is_none(),
                    },
                );
            }
        }
        for (id, request) in after.requests() {
            self.ledger.requests.insert(
                id.clone(),
                super::ledger::LedgerRequest {
                    state: request.state,
                    live: request.live().map(|t| (t.driver_id.clone(), t.fence)),
                    own: request.own_window.is_some(),
                    changed_ms: request.ended_at_ms.unwrap_or(request.requested_at_ms),
                },
            );
        }
        self.claims.clear();
        self.batches.clear();
        self.owners.clear();
        self.seals = after
            .reports()
            .after(WindowSeq::default())
            .filter_map(|sealed| {
                Some((
                    sealed.report.window_seq,
                    (sealed.owner?, sealed.report.clone()),
                ))
            })
            .collect();
        self.intake.clear();
        self.ages.clear();
        self.own.clear();
        self.removed.clear();
        self.apart.clear();
        let epoch = after.leadership.epoch;
        let leader = after.leadership.leader.as_ref();
        self.leader = leader.map(|leader| (epoch, leader.nonce, leader.until_ms));
    }

    /// A step may forget a request whose memory has run out and take its id in anew.
    fn forget_old(&mut self, event: &Event, after: &Region, now: StoreTime) {
        let begins = matches!(event.kind, EventType::Requested | EventType::Assigned);
        let Some(id) = event.request_id.as_ref().filter(|_| begins) else {
            return;
        };
        let memory = after.rules().request_memory_ms;
        let old = self.ledger.requests.get(id).is_some_and(|told| {
            told.state.is_final() && told.live.is_none() && told.changed_ms + memory <= now.ms()
        });
        if old {
            self.ledger.forget(id);
            self.intake.remove(id);
            self.ages.remove(id);
        }
    }

    fn check_event(
        &mut self,
        command: &Command,
        event: &Event,
        after: &Region,
        now: StoreTime,
    ) -> Result<(), Breach> {
        let (Some(id), Some(driver)) = (&event.request_id, &event.driver_id) else {
            return Ok(());
        };
        let rider = after.requests().get(id).and_then(|r| r.rider().cloned());
        let key = claim_key(command).map(|(_, key)| key);
        let by_key = |verb: bool| {
            verb && key.is_some_and(|key| {
                key.request_id == *id && key.driver_id == *driver && Some(key.fence) == event.fence
            })
        };
        match event.kind {
            EventType::Assigned => {
                let lease = event.lease_ms.unwrap_or_default();
                let offer = after.rules().offer_window_ms + CONFIRM_MARGIN_MS;
                hold!(
                    Inv3,
                    lease >= offer && lease <= MAX_LEASE_MS,
                    "a lease of {lease} ms is not within the rails"
                );
                let apart = self.apart.iter().any(|(d, r, person, until)| {
                    let same = r == id || (person.is_some() && *person == rider);
                    d == driver && same && now.ms() < *until
                });
                hold!(Inv3, !apart, "{driver} and {id} are kept apart: {event:?}");
            }
            EventType::Confirmed if event.reason != Some(Reason::Reconciled) => {
                let by = by_key(matches!(command, Command::Confirm(_)));
                hold!(Inv3, by, "confirmed by {command:?}: {event:?}");
                let held = self.ledger.drivers.get(driver);
                let extended = after
                    .drivers()
                    .get(driver)
                    .is_some_and(|d| d.claim.is_some());
                let over = held
                    .and_then(|h| h.lease_until_ms)
                    .is_some_and(|u| u <= now.ms());
                hold!(
                    Inv3,
                    extended && (!over || self.extended(driver, id, event.fence)),
                    "confirmed after the lease: {event:?}"
                );
            }
            EventType::Released => {
                let by = by_key(matches!(command, Command::Release(_)));
                hold!(Inv3, by, "released by {command:?}: {event:?}");
                if event.reason != Some(Reason::Undeliverable) {
                    self.keep_apart(driver, id, rider, after, now);
                }
            }
            EventType::LeaseExpired => self.keep_apart(driver, id, rider, after, now),
            EventType::Completed => {
                let itself = matches!(event.reason, Some(Reason::TripTimeout | Reason::Reconciled));
                let by = by_key(matches!(command, Command::Complete(_)));
                hold!(Inv3, itself || by, "completed by {command:?}: {event:?}");
            }
            _ => {}
        }
        Ok(())
    }

    fn extended(&self, driver: &DriverId, request: &RequestId, fence: Option<Fence>) -> bool {
        fence.is_some_and(|fence| {
            let key = ("extend", driver.clone(), request.clone(), fence);
            self.claims.contains_key(&key)
        })
    }

    fn keep_apart(
        &mut self,
        driver: &DriverId,
        request: &RequestId,
        rider: Option<RiderId>,
        after: &Region,
        now: StoreTime,
    ) {
        // a driver remembers its last few: the books keep one, which no bound can push out
        self.apart.retain(|(d, ..)| d != driver);
        let until = now.ms() + after.rules().decline_cooldown_ms;
        let kept = after
            .drivers()
            .get(driver)
            .is_some_and(|d| !d.cooldowns.is_empty());
        if kept {
            self.apart
                .push((driver.clone(), request.clone(), rider, until));
        }
    }

    fn check_ages(&mut self, after: &Region) -> Result<(), Breach> {
        for (id, request) in after.requests() {
            if request.state == RequestState::Pending {
                let age = *self
                    .ages
                    .entry(id.clone())
                    .or_insert(request.requested_at_ms);
                hold!(
                    Inv6,
                    age == request.requested_at_ms,
                    "request {id} waits since {} and not {age}",
                    request.requested_at_ms
                );
            } else if request.state == RequestState::Released {
                self.ages.remove(id);
            }
        }
        Ok(())
    }

    fn check_pings(
        &mut self,
        before: &Before,
        after: &Region,
        now: StoreTime,
    ) -> Result<(), Breach> {
        let ttl = after.rules().driver_ttl_ms;
        self.removed.retain(|_, (_, at)| *at + ttl > now.ms());
        self.apart
            .retain(|(driver, ..)| after.drivers().contains_key(driver));
        for (id, driver) in after.drivers() {
            let Some(presence) = &driver.presence else {
                continue;
            };
            if let Some(&known) = before.pings.get(id) {
                hold!(
                    Inv3,
                    presence.at_ms >= known,
                    "driver {id} went back from {known} to {}",
                    presence.at_ms
                );
            }
            if let Some((at, _)) = self.removed.get(id) {
                hold!(
                    Inv3,
                    presence.at_ms > *at || presence.status == DriverStatus::Offline,
                    "driver {id} came back by a ping of {} although removed at {at}",
                    presence.at_ms
                );
            }
        }
        Ok(())
    }

    fn check_answer(
        &mut self,
        before: &Before,
        command: &Command,
        answer: &Answer,
        after: &Region,
        now: StoreTime,
    ) -> Result<(), Breach> {
        if let Some((verb, key)) = claim_key(command) {
            return self.check_claim_call(after, verb, key, answer);
        }
        let quarantined = after.quarantine(now).is_some();
        self.check_own(before, command, answer, after, quarantined)?;
        match (command, answer) {
            (Command::Intake(_), Answer::Intake(Ok(taken))) => {
                hold!(Inv6, !quarantined, "requests were taken in a quarantine");
                self.check_intake(before, command, &taken.requests)
            }
            (Command::RemoveDriver(removal), Answer::RemoveDriver(Ok(()))) => {
                let at = before
                    .pings
                    .get(&removal.driver_id)
                    .copied()
                    .unwrap_or_default();
                let at = at.max(now.ms());
                self.removed
                    .insert(removal.driver_id.clone(), (at, now.ms()));
                Ok(())
            }
            (Command::TakeWindow(take), Answer::TakeWindow(Ok(taken))) => {
                hold!(Inv4, !quarantined, "a window was taken in a quarantine");
                self.check_take(before, take, taken, now)
            }
            (Command::ClaimBatch(batch), Answer::ClaimBatch(Ok(outcomes))) => {
                self.check_owner(batch.window_seq, batch.owner, after)?;
                let key = (batch.window_seq, batch.batch_no);
                match self.batches.get(&key) {
                    Some((owner, first)) if *owner == batch.owner => {
                        self.repeats += 1;
                        hold!(Inv10, first == outcomes, "a batch was answered anew");
                    }
                    _ => {
                        self.batches
                            .insert(key, (batch.owner, Arc::clone(outcomes)));
                    }
                }
                Ok(())
            }
            (Command::ClaimBatch(_), Answer::ClaimBatch(Err(_))) => {
                self.stale += 1;
                Ok(())
            }
            (Command::Seal(seal), Answer::Seal(Ok(report))) => {
                if let Some((owner, first)) = self.seals.get(&seal.window_seq) {
                    self.repeats += 1;
                    hold!(
                        Inv4,
                        *owner == seal.owner && first == report,
                        "window {} was sealed twice",
                        seal.window_seq
                    );
                    return Ok(());
                }
                self.check_owner(seal.window_seq, seal.owner, after)?;
                self.seals
                    .insert(seal.window_seq, (seal.owner, Arc::clone(report)));
                Ok(())
            }
            _ => self.check_leadership(command, answer, now),
        }
    }

    fn check_leadership(
        &mut self,
        command: &Command,
        answer: &Answer,
        now: StoreTime,
    ) -> Result<(), Breach> {
        match (command, answer) {
            (Command::Acquire(ask), Answer::Acquire(Ok(leads))) => {
                let rival = self
                    .leader
                    .is_some_and(|(_, nonce, until)| nonce != ask.nonce && now.ms() < until);
                hold!(Inv4, !rival, "a second leader in epoch {}", leads.epoch);
                self.leader = Some((leads.epoch, ask.nonce, leads.until_ms));
                Ok(())
            }
            (Command::Renew(renewal), Answer::Renew(Ok(leads))) => {
                let same = self.leader.is_some_and(|(epoch, nonce, _)| {
                    epoch == renewal.epoch && nonce == renewal.nonce
                });
                hold!(Inv4, same, "a leadership was renewed that was not held");
                self.leader = Some((leads.epoch, renewal.nonce, leads.until_ms));
                Ok(())
            }
            (Command::Resign(_), Answer::Resign(Ok(()))) => {
                self.leader = None;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn check_own(
        &mut self,
        before: &Before,
        command: &Command,
        answer: &Answer,
        after: &Region,
        quarantined: bool,
    ) -> Result<(), Breach> {
        match (command, answer) {
            (Command::BeginOwn(begin), Answer::BeginOwn(Ok(begun))) => {
                hold!(
                    Inv4,
                    !quarantined,
                    "an own window was begun in a quarantine"
                );
                let same = before.own.is_none_or(|f| f == begin.fingerprint);
                hold!(Inv6, same, "another body got an own window's answer");
                if let (OwnBegun::Done { result }, Some((_, Some(first)))) =
                    (begun, self.own.get(&begin.window_id))
                {
                    self.repeats += 1;
                    hold!(Inv10, result == first, "an own window was answered anew");
                }
                Ok(())
            }
            (Command::FinishOwn(finish), Answer::FinishOwn(Ok(result))) => {
                let own = after.own_windows.get(&finish.window_id);
                let fingerprint = own.map(|own| own.fingerprint);
                if let Some(fingerprint) = fingerprint {
                    self.own.insert(
                        finish.window_id.clone(),
                        (fingerprint, Some(Arc::clone(result))),
                    );
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn check_claim_call(
        &mut self,
        after: &Region,
        verb: &'static str,
        key: &ClaimKey,
        answer: &Answer,
    ) -> Result<(), Breach> {
        let (Answer::Confirm(answer)
        | Answer::Release(answer)
        | Answer::Complete(answer)
        | Answer::Extend(answer)) = answer
        else {
            hold!(Inv10, false, "{verb} got the answer of another call");
            return Ok(());
        };
        let call = (
            verb,
            key.driver_id.clone(),
            key.request_id.clone(),
            key.fence,
        );
        match (self.claims.get(&call), answer) {
            (Some(_), _) if verb == "extend" => {}
            (Some(first), Ok(again)) => {
                self.repeats += 1;
                hold!(Inv10, first == again, "{verb} of {key:?} was answered anew");
            }
            (Some(_), Err(refusal)) => {
                // what is forgotten gives no first answer
                let request = after.requests().get(&key.request_id);
                let traced = request.is_some_and(|r| r.trace(&key.driver_id, key.fence).is_some());
                hold!(
                    Inv10,
                    !traced,
                    "{verb} of {key:?} was granted and is now refused: {refusal}"
                );
            }
            (None, Ok(first)) => {
                self.claims.insert(call, first.clone());
            }
            (None, Err(_)) => {}
        }
        Ok(())
    }

    fn check_intake(
        &mut self,
        before: &Before,
        command: &Command,
        taken: &[Taken],
    ) -> Result<(), Breach> {
        let Command::Intake(intake) = command else {
            return Ok(());
        };
        for entry in taken {
            let Some(draft) = intake.requests.iter().find(|draft| draft.id == entry.id) else {
                hold!(Inv6, false, "request {} was not sent", entry.id);
                continue;
            };
            let fingerprint = draft.fingerprint();
            if entry.replayed {
                self.repeats += 1;
                if let Some((first, answer)) = self.intake.get(&entry.id) {
                    let same = *first == fingerprint && answer.place == entry.place;
                    hold!(Inv6, same, "request {} got another's answer", entry.id);
                }
            } else {
                if before.known.contains(&entry.id) {
                    self.ages.remove(&entry.id);
                }
                self.intake
                    .insert(entry.id.clone(), (fingerprint, entry.clone()));
            }
        }
        Ok(())
    }

    fn check_take(
        &mut self,
        before: &Before,
        take: &TakeWindow,
        taken: &TakenWindow,
        now: StoreTime,
    ) -> Result<(), Breach> {
        let repeated = self.owners.get(&take.window_seq) == Some(&taken.owner);
        if let Taker::Fallback { .. } = take.taker
            && !repeated
        {
            let in_time = before.overdue.is_some_and(|at| at <= now.ms());
            hold!(
                Inv4,
                in_time,
                "window {} was taken over too early",
                take.window_seq
            );
        }
        if let Holder::Leader { epoch, nonce } = taken.owner.holder {
            let leads = self
                .leader
                .is_some_and(|(e, n, until)| e == epoch && n == nonce && now.ms() < until);
            hold!(
                Inv4,
                leads,
                "window {} was taken by no leader",
                take.window_seq
            );
        }
        hold!(
            Inv4,
            !self.seals.contains_key(&take.window_seq),
            "window {} was taken after its seal",
            take.window_seq
        );
        self.owners.insert(take.window_seq, taken.owner);
        Ok(())
    }

    fn check_owner(&self, seq: WindowSeq, owner: Owner, after: &Region) -> Result<(), Breach> {
        let current = self.owners.get(&seq) == Some(&owner)
            && owner.generation == after.generation()
            && match owner.holder {
                Holder::Leader { epoch, .. } => epoch == after.leadership.epoch,
                Holder::Fallback { .. } => true,
            };
        hold!(
            Inv4,
            current,
            "window {seq} served {owner:?}, who does not own it"
        );
        if let Some(WindowPhase::Taken { owner: held, .. }) =
            after.windows.get(&seq).map(|window| window.phase)
        {
            hold!(Inv4, held == owner, "window {seq} has two owners");
        }
        Ok(())
    }
}

/// A request that lost its driver after its deadline does not wait on.
fn check_returned(events: &[Event], after: &Region, now: StoreTime) -> Result<(), Breach> {
    for event in events {
        let lost = matches!(event.kind, EventType::Released | EventType::LeaseExpired);
        let Some(id) = event.request_id.as_ref().filter(|_| lost) else {
            continue;
        };
        let waits = after.requests().get(id).is_some_and(|request| {
            request.state == RequestState::Pending && now.ms() > request.deadline_ms
        });
        hold!(Inv6, !waits, "request {id} waits on after its deadline");
    }
    Ok(())
}

fn claim_key(command: &Command) -> Option<(&'static str, &ClaimKey)> {
    match command {
        Command::Confirm(call) => Some(("confirm", &call.claim)),
        Command::Release(call) => Some(("release", &call.claim)),
        Command::Complete(call) => Some(("complete", &call.claim)),
        Command::Extend(call) => Some(("extend", &call.claim)),
        _ => None,
    }
}

/// Shorthand for a number of milliseconds.
pub(crate) const fn ms(ms: i64) -> DurationMs {
    DurationMs::new(ms)
}
