//! What ends by itself: touched when met, swept when nobody comes by.

use serde::{Deserialize, Serialize};

use super::{
    claim::{ClaimKey, ClaimPhase},
    due::DueKey,
    mutation::Mutation,
    outbox::Reason,
    reconcile::Reconciling,
    region::Region,
    request::RequestState,
    rules::MAX_SWEPT_A_STEP,
};
use crate::domain::{DriverId, RequestId, StoreTime};

/// Ends what is due, at most [`MAX_SWEPT_A_STEP`] items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Sweep {}

/// What a sweep did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Swept {
    /// Due items looked at.
    pub looked_at: u32,
    /// More are due: sweep again.
    pub more: bool,
}

impl Region {
    /// Ends the driver's claim if its time is up.
    pub(crate) fn touch_driver(&mut self, id: &DriverId, now: StoreTime) {
        let Some(claim) = self
            .drivers
            .get(id)
            .and_then(|record| record.claim.as_ref())
        else {
            return;
        };
        if now.ms() < claim.ends_at() {
            return;
        }
        let key = ClaimKey {
            driver_id: id.clone(),
            request_id: claim.request_id.clone(),
            fence: claim.fence,
        };
        match claim.phase {
            ClaimPhase::Offered { .. } => self.expire_lease(&key, None, now),
            ClaimPhase::OnTrip { .. } => {
                self.end_trip(&key, Reason::TripTimeout, now);
            }
        }
    }

    /// Ends the request's claim, or the request itself, if its time is up.
    pub(crate) fn touch_request(&mut self, id: &RequestId, now: StoreTime) {
        let Some(record) = self.requests.get(id) else {
            return;
        };
        if record.state == RequestState::Pending && now.ms() > record.deadline_ms {
            self.expire_request(id, now);
        } else if let Some(driver) = record.live().map(|trace| trace.driver_id.clone()) {
            self.touch_driver(&driver, now);
        } else if record.state != RequestState::Pending
            && record
                .ended_at_ms
                .is_some_and(|at| at + self.rules.request_memory_ms <= now.ms())
        {
            self.requests.remove(id);
            self.due.remove(&DueKey::Request(id.clone()));
        }
    }

    /// Ends what is due, a bounded number of items; doing it twice is doing it once.
    pub(crate) fn sweep(&mut self, now: StoreTime) -> Swept {
        let mut swept = self.sweep_due(now);
        self.sweep_untold(now);
        self.mend_closes(now);
        swept.more |= self.reconciling != Reconciling::Idle;
        self.reopen(now);
        self.outbox.trim(now.ms());
        swept
    }

    pub(crate) fn sweep_due(&mut self, now: StoreTime) -> Swept {
        let mut looked_at = 0;
        while (looked_at as usize) < MAX_SWEPT_A_STEP {
            let Some(key) = self.due.pop(now.ms()) else {
                break;
            };
            looked_at += 1;
            match key {
                DueKey::Driver(id) => self.driver_due(&id, now),
                DueKey::Request(id) => self.request_due(&id, now),
                DueKey::OwnWindow(id) => {
                    self.own_windows.remove(&id);
                }
                // a window waits for its taker; its close was due for those who watch
                DueKey::WindowClose(_) | DueKey::Quarantine => {}
            }
        }
        Swept {
            looked_at,
            more: self.due.next().is_some_and(|at| at <= now.ms()),
        }
    }

    /// A due time is a hint: the record decides, and says when to look again.
    fn driver_due(&mut self, id: &DriverId, now: StoreTime) {
        if self.has(Mutation::ReaperFreesConfirmed)
            && let Some(claim) = self.drivers.get(id).and_then(|record| record.claim.clone())
        {
            let key = ClaimKey {
                driver_id: id.clone(),
                request_id: claim.request_id,
                fence: claim.fence,
            };
            self.expire_lease(&key, None, now);
            return;
        }
        self.touch_driver(id, now);
        let Some(record) = self.drivers.get(id) else {
            return;
        };
        let ends_at = match &record.claim {
            Some(claim) => claim.ends_at(),
            None => self.driver_goes_at(record).unwrap_or(now.ms()),
        };
        if ends_at <= now.ms() && record.claim.is_none() {
            self.drivers.remove(id);
            self.due.remove(&DueKey::Driver(id.clone()));
        } else {
            self.due.set(DueKey::Driver(id.clone()), ends_at);
        }
    }

    fn request_due(&mut self, id: &RequestId, now: StoreTime) {
        self.touch_request(id, now);
        let Some(record) = self.requests.get(id) else {
            return;
        };
        // assigned and on-trip ones have no due time of their own: their driver has
        if let Some(ended) = record.ended_at_ms {
            self.due.set(
                DueKey::Request(id.clone()),
                ended + self.rules.request_memory_ms,
            );
        } else if record.state == RequestState::Pending {
            self.due.set(
                DueKey::Request(id.clone()),
                record.deadline_ms + crate::domain::DurationMs::new(1),
            );
        }
    }
}
