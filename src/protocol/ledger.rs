//! The ledger: what a region's events alone say about its drivers and requests, checked as it is
//! written.
//!
//! It knows nothing of the steps that published the events, so it serves twice: beside the steps in
//! tests (its books must equal the state, INV-7), and after the fact over a recorded event stream of
//! any store (INV-1, 2, 3, 6).

use std::collections::BTreeMap;

use super::{
    invariants::{Breach, Invariant},
    outbox::{Event, EventType, Reason, Source},
    request::RequestState,
};
use crate::domain::{DriverId, EventId, Fence, RequestId, UnixMs};

/// A claim as the events tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldClaim {
    /// The other side.
    pub request_id: RequestId,
    /// The claim's version.
    pub fence: Fence,
    /// End of the lease as first given; extending publishes no event.
    pub lease_until_ms: Option<UnixMs>,
    /// Whether the trip is on.
    pub on_trip: bool,
}

/// A request as the events tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerRequest {
    /// Where it stands.
    pub state: RequestState,
    /// Its live claim.
    pub live: Option<(DriverId, Fence)>,
    /// It came by a caller's own window or a reconcile, not by the intake.
    pub own: bool,
    /// When its state last changed.
    pub changed_ms: UnixMs,
}

/// The books of one region.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ledger {
    /// Drivers that are held.
    pub drivers: BTreeMap<DriverId, HeldClaim>,
    /// Requests that were heard of.
    pub requests: BTreeMap<RequestId, LedgerRequest>,
    /// The last fence.
    pub fence: Fence,
    /// The last event.
    pub last: EventId,
    /// Claims booked.
    pub claims: u64,
}

impl Ledger {
    /// Books an event.
    ///
    /// # Errors
    /// The invariant that the event breaks.
    pub fn book(&mut self, event: &Event) -> Result<(), Breach> {
        if event.id != self.last.next() {
            return Err(breach(Invariant::Inv7, event, "event ids have a gap"));
        }
        self.last = event.id;
        match event.kind {
            EventType::ConfigChanged | EventType::GenerationChanged => Ok(()),
            EventType::Requested => self.requested(event),
            EventType::Assigned => self.assigned(event),
            EventType::Confirmed => self.confirmed(event),
            EventType::Released | EventType::LeaseExpired | EventType::Completed => {
                self.claim_ended(event)
            }
            EventType::Cancelled => self.cancelled(event),
            EventType::Expired => self.expired(event),
        }
    }

    /// Forgets a request whose memory has run out.
    pub fn forget(&mut self, id: &RequestId) {
        self.requests.remove(id);
    }

    fn requested(&mut self, event: &Event) -> Result<(), Breach> {
        let id = request_of(event)?;
        let open_again = |r: &LedgerRequest| r.state == RequestState::Released;
        if self.requests.get(id).is_some_and(|r| !open_again(r)) {
            return Err(breach(
                Invariant::Inv6,
                event,
                "a known request was taken in again",
            ));
        }
        self.set(id, RequestState::Pending, None, false, event.at_ms);
        Ok(())
    }

    fn assigned(&mut self, event: &Event) -> Result<(), Breach> {
        let (id, driver, fence) = claim_of(event)?;
        self.rise(event, fence)?;
        if self.drivers.contains_key(driver) {
            return Err(breach(Invariant::Inv1, event, "the driver is held already"));
        }
        let own = event.source == Some(Source::Own);
        let free = match self.requests.get(id).map(|request| request.state) {
            Some(RequestState::Pending) => !own,
            None | Some(RequestState::Released) => own,
            Some(_) => false,
        };
        if !free {
            return Err(breach(
                Invariant::Inv1,
                event,
                "the request cannot be assigned",
            ));
        }
        if event.lease_until_ms.is_none() {
            return Err(breach(Invariant::Inv7, event, "an offer without a lease"));
        }
        self.hold(id, driver, fence, event, false, own);
        Ok(())
    }

    fn confirmed(&mut self, event: &Event) -> Result<(), Breach> {
        let (id, driver, fence) = claim_of(event)?;
        if event.reason == Some(Reason::Reconciled) {
            self.rise(event, fence)?;
            let live = self
                .requests
                .get(id)
                .is_some_and(|request| request.live.is_some());
            if self.drivers.contains_key(driver) || live {
                return Err(breach(
                    Invariant::Inv1,
                    event,
                    "a restored trip is held twice",
                ));
            }
            self.hold(id, driver, fence, event, true, true);
            return Ok(());
        }
        let claim = self.held(event, id, driver, fence)?;
        if claim.on_trip {
            return Err(breach(Invariant::Inv3, event, "confirmed twice"));
        }
        claim.on_trip = true;
        if let Some(request) = self.requests.get_mut(id) {
            request.state = RequestState::Confirmed;
            request.changed_ms = event.at_ms;
        }
        Ok(())
    }

    fn claim_ended(&mut self, event: &Event) -> Result<(), Breach> {
        let (id, driver, fence) = claim_of(event)?;
        let claim = self.held(event, id, driver, fence)?;
        let completed = event.kind == EventType::Completed;
        if claim.on_trip != completed {
            return Err(breach(Invariant::Inv3, event, "the claim is not that far"));
        }
        if event.kind == EventType::LeaseExpired
            && claim
                .lease_until_ms
                .is_some_and(|until| event.at_ms < until)
            && event.reason != Some(Reason::Reconciled)
        {
            return Err(breach(Invariant::Inv3, event, "the lease was not over"));
        }
        self.drivers.remove(driver);
        let own = self.requests.get(id).is_some_and(|request| request.own);
        let state = match (completed, own) {
            (true, _) => RequestState::Confirmed,
            (false, true) => RequestState::Released,
            (false, false) => RequestState::Pending,
        };
        self.set(id, state, None, own, event.at_ms);
        Ok(())
    }

    fn cancelled(&mut self, event: &Event) -> Result<(), Breach> {
        let id = request_of(event)?;
        let Some(request) = self.requests.get(id) else {
            return Err(breach(
                Invariant::Inv7,
                event,
                "an unknown request was cancelled",
            ));
        };
        let open = matches!(
            request.state,
            RequestState::Pending | RequestState::Assigned
        );
        if !open {
            return Err(breach(
                Invariant::Inv6,
                event,
                "an ended request was cancelled",
            ));
        }
        let named = event.driver_id.clone().zip(event.fence);
        if request.live != named {
            return Err(breach(
                Invariant::Inv3,
                event,
                "another claim was cancelled",
            ));
        }
        let own = request.own;
        if let Some((driver, _)) = named {
            self.drivers.remove(&driver);
        }
        self.set(id, RequestState::Cancelled, None, own, event.at_ms);
        Ok(())
    }

    fn expired(&mut self, event: &Event) -> Result<(), Breach> {
        let id = request_of(event)?;
        if self.requests.get(id).map(|r| r.state) != Some(RequestState::Pending) {
            return Err(breach(
                Invariant::Inv6,
                event,
                "only a pending request expires",
            ));
        }
        self.set(id, RequestState::Expired, None, false, event.at_ms);
        Ok(())
    }

    fn rise(&mut self, event: &Event, fence: Fence) -> Result<(), Breach> {
        if fence <= self.fence {
            return Err(breach(Invariant::Inv2, event, "the fence did not rise"));
        }
        self.fence = fence;
        Ok(())
    }

    fn held(
        &mut self,
        event: &Event,
        id: &RequestId,
        driver: &DriverId,
        fence: Fence,
    ) -> Result<&mut HeldClaim, Breach> {
        match self.drivers.get_mut(driver) {
            Some(claim) if claim.request_id == *id && claim.fence == fence => Ok(claim),
            _ => Err(breach(
                Invariant::Inv3,
                event,
                "the driver is not held by this claim",
            )),
        }
    }

    fn hold(
        &mut self,
        id: &RequestId,
        driver: &DriverId,
        fence: Fence,
        event: &Event,
        on_trip: bool,
        own: bool,
    ) {
        self.claims += 1;
        self.drivers.insert(
            driver.clone(),
            HeldClaim {
                request_id: id.clone(),
                fence,
                lease_until_ms: event.lease_until_ms,
                on_trip,
            },
        );
        let state = if on_trip {
            RequestState::Confirmed
        } else {
            RequestState::Assigned
        };
        self.set(id, state, Some((driver.clone(), fence)), own, event.at_ms);
    }

    fn set(
        &mut self,
        id: &RequestId,
        state: RequestState,
        live: Option<(DriverId, Fence)>,
        own: bool,
        changed_ms: UnixMs,
    ) {
        self.requests.insert(
            id.clone(),
            LedgerRequest {
                state,
                live,
                own,
                changed_ms,
            },
        );
    }
}

fn request_of(event: &Event) -> Result<&RequestId, Breach> {
    event
        .request_id
        .as_ref()
        .ok_or_else(|| breach(Invariant::Inv7, event, "the event names no request"))
}

fn claim_of(event: &Event) -> Result<(&RequestId, &DriverId, Fence), Breach> {
    match (&event.request_id, &event.driver_id, event.fence) {
        (Some(request), Some(driver), Some(fence)) => Ok((request, driver, fence)),
        _ => Err(breach(Invariant::Inv7, event, "the event names no claim")),
    }
}

fn breach(invariant: Invariant, event: &Event, what: &str) -> Breach {
    Breach {
        invariant,
        what: format!("{what}: {event:?}"),
    }
}
