//! The promises as checks over a region's state and its ledger, by their names.
//!
//! Each costs the size of the region; tests run them after every step. The steps themselves keep
//! the cheap ones in release: a claim is made in one place, which looks again at both sides and at
//! the fence (INV-1, INV-2) and counts a breach instead of making it, and every window step compares
//! its owner (INV-4).

use std::fmt;

use super::{
    claim::ClaimPhase,
    due::DueKey,
    ledger::Ledger,
    region::Region,
    request::{RequestRecord, RequestState},
    rules::{MAX_UNSEALED_WINDOWS, REMEMBERED_CLAIMS, REMEMBERED_COOLDOWNS},
    window::WindowPhase,
};

/// A promise of the product, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// One live claim a driver, and one a request.
    Inv1,
    /// Fences rise.
    Inv2,
    /// Every end of a claim compares (request, fence) in one step.
    Inv3,
    /// Claims and seal of a window by its current owner alone, sealed once.
    Inv4,
    /// Losing a race is an answer.
    Inv5,
    /// A request ends once, and its repeat gets the first answer.
    Inv6,
    /// An event is published with the change it tells.
    Inv7,
    /// A window ends, and says how.
    Inv8,
    /// The same in gives the same out.
    Inv9,
    /// A repeated call gets the first answer, so that an unknown outcome can be asked for.
    Inv10,
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "INV-{}", *self as u8 + 1)
    }
}

/// A promise was broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{invariant} is broken: {what}")]
pub struct Breach {
    /// Which.
    pub invariant: Invariant,
    /// By what.
    pub what: String,
}

/// Breaks off with a breach unless a condition holds.
macro_rules! hold {
    ($invariant:ident, $condition:expr, $($what:tt)*) => {
        if !$condition {
            return Err(Breach { invariant: Invariant::$invariant, what: format!($($what)*) });
        }
    };
}
#[cfg(any(test, feature = "conformance"))]
pub(crate) use hold;

/// INV-1: both sides of every claim name each other, and nothing else is held.
///
/// # Errors
/// The claim that is one-sided or double.
pub fn inv_1_one_live_claim(region: &Region) -> Result<(), Breach> {
    for (id, driver) in region.drivers() {
        let Some(claim) = &driver.claim else { continue };
        let live = region
            .requests()
            .get(&claim.request_id)
            .and_then(RequestRecord::live);
        hold!(
            Inv1,
            live.is_some_and(|trace| trace.driver_id == *id && trace.fence == claim.fence),
            "driver {id} is held for {} which does not know it",
            claim.request_id
        );
    }
    for (id, request) in region.requests() {
        let live = request
            .claims
            .iter()
            .filter(|t| t.ended_ms.is_none())
            .count();
        hold!(Inv1, live <= 1, "request {id} has {live} live claims");
        let wants = match request.state {
            RequestState::Assigned => Some(false),
            RequestState::Confirmed if request.ended_at_ms.is_none() => Some(true),
            _ => None,
        };
        hold!(
            Inv1,
            wants.is_some() == request.live().is_some(),
            "request {id} is {:?} with {live} live claims",
            request.state
        );
        let Some(trace) = request.live() else {
            continue;
        };
        let claim = region
            .drivers()
            .get(&trace.driver_id)
            .and_then(|d| d.claim.as_ref());
        hold!(
            Inv1,
            claim.is_some_and(|claim| {
                let on_trip = matches!(claim.phase, ClaimPhase::OnTrip { .. });
                claim.request_id == *id && claim.fence == trace.fence && wants == Some(on_trip)
            }),
            "request {id} is held by {} which does not know it",
            trace.driver_id
        );
    }
    hold!(
        Inv1,
        region.counters().double_claims == 0,
        "a double claim was tried"
    );
    Ok(())
}

/// INV-2: no claim has a fence that was not given out, and none was given out twice.
///
/// # Errors
/// The fence that is too high, or the counted breach.
pub fn inv_2_fences_rise(region: &Region) -> Result<(), Breach> {
    for (id, request) in region.requests() {
        let rising = request.claims.windows(2).all(|pair| match pair {
            [a, b] => a.fence < b.fence,
            _ => true,
        });
        hold!(Inv2, rising, "the fences of request {id} do not rise");
        hold!(
            Inv2,
            request
                .claims
                .iter()
                .all(|trace| trace.fence <= region.last_fence()),
            "request {id} has a fence that was not given out"
        );
    }
    hold!(
        Inv2,
        region.counters().fences_not_risen == 0,
        "a fence did not rise"
    );
    Ok(())
}

/// INV-4: unsealed windows follow the sealed ones without a gap, only the oldest is taken, and no
/// owner is of a later generation.
///
/// # Errors
/// The window that is out of order.
pub fn inv_4_one_owner(region: &Region) -> Result<(), Breach> {
    let sealed = region
        .reports()
        .last()
        .map(|window| window.report.window_seq);
    let mut next = sealed.unwrap_or_default().next();
    let mut first = true;
    for window in region.windows() {
        hold!(
            Inv4,
            window.seq == next,
            "window {} follows a gap",
            window.seq
        );
        if let WindowPhase::Taken { owner, .. } = window.phase {
            hold!(
                Inv4,
                first,
                "window {} is taken before its turn",
                window.seq
            );
            hold!(
                Inv4,
                owner.generation <= region.generation(),
                "window {} is owned from the future",
                window.seq
            );
        }
        first = false;
        next = next.next();
    }
    hold!(
        Inv4,
        next == region.last_window().next(),
        "window {} is missing",
        next
    );
    Ok(())
}

/// INV-6: the pending set is exactly the pending requests, by their age.
///
/// # Errors
/// The request that waits unseen, or is seen and does not wait.
pub fn inv_6_pending_is_seen(region: &Region) -> Result<(), Breach> {
    let mut pending = 0;
    for (id, request) in region.requests() {
        let waits = request.state == RequestState::Pending;
        pending += usize::from(waits);
        hold!(
            Inv6,
            region
                .pending
                .contains(&(request.requested_at_ms, id.clone()))
                == waits,
            "request {id} is {:?} and the pending set disagrees",
            request.state
        );
        hold!(
            Inv6,
            request.ended_at_ms.is_none() || request.state.is_final(),
            "request {id} ended while {:?}",
            request.state
        );
    }
    hold!(
        Inv6,
        pending == region.pending.len(),
        "the pending set has strangers"
    );
    Ok(())
}

/// INV-7: the ledger, written from the events alone, equals the state.
///
/// # Errors
/// The change that no event told, or that an event told and nobody made.
pub fn inv_7_events_tell_all(region: &Region, ledger: &Ledger) -> Result<(), Breach> {
    for (id, driver) in region.drivers() {
        let told = ledger.drivers.get(id);
        let same = match (&driver.claim, told) {
            (None, None) => true,
            (Some(claim), Some(told)) => {
                let on_trip = matches!(claim.phase, ClaimPhase::OnTrip { .. });
                claim.request_id == told.request_id
                    && claim.fence == told.fence
                    && on_trip == told.on_trip
            }
            _ => false,
        };
        hold!(
            Inv7,
            same,
            "driver {id} holds {:?}, events tell {told:?}",
            driver.claim
        );
    }
    for id in ledger.drivers.keys() {
        let known = region.drivers().contains_key(id);
        hold!(Inv7, known, "driver {id} is held by events alone");
    }
    for (id, request) in region.requests() {
        let told = ledger.requests.get(id).map(|told| told.state);
        hold!(
            Inv7,
            told == Some(request.state),
            "request {id} is {:?}, events tell {told:?}",
            request.state
        );
    }
    for (id, told) in &ledger.requests {
        hold!(
            Inv7,
            region.requests().contains_key(id) || told.state.is_final(),
            "request {id} is {:?} by events alone",
            told.state
        );
    }
    Ok(())
}

/// INV-8: what waits has a window or an end in sight, and every end has a due time.
///
/// # Errors
/// What would never end.
pub fn inv_8_everything_ends(region: &Region) -> Result<(), Breach> {
    let due = |key: DueKey| region.due.at(&key);
    for (id, driver) in region.drivers() {
        let at = due(DueKey::Driver(id.clone()));
        let ends = driver.claim.as_ref().map(super::claim::Claim::ends_at);
        hold!(
            Inv8,
            at.is_some_and(|at| ends.is_none_or(|ends| at <= ends)),
            "driver {id} is due at {at:?}, its claim ends at {ends:?}"
        );
    }
    for (id, request) in region.requests() {
        if request.live().is_none() {
            let at = due(DueKey::Request(id.clone()));
            hold!(Inv8, at.is_some(), "request {id} never ends");
        }
    }
    for id in region.own_windows.keys() {
        let at = due(DueKey::OwnWindow(id.clone()));
        hold!(Inv8, at.is_some(), "own window {id} is never forgotten");
    }
    Ok(())
}

/// The stated bounds hold.
///
/// # Errors
/// What has grown over its bound.
pub fn bounds_hold(region: &Region) -> Result<(), Breach> {
    let windows = region.windows().count();
    hold!(
        Inv8,
        windows <= MAX_UNSEALED_WINDOWS,
        "{windows} windows are unsealed"
    );
    for (id, driver) in region.drivers() {
        let cooldowns = driver.cooldowns.len();
        hold!(
            Inv8,
            cooldowns <= REMEMBERED_COOLDOWNS,
            "driver {id} has {cooldowns} cool-downs"
        );
    }
    for (id, request) in region.requests() {
        let claims = request.claims.len();
        hold!(
            Inv8,
            claims <= REMEMBERED_CLAIMS,
            "request {id} remembers {claims} claims"
        );
    }
    Ok(())
}

/// Every check of a state beside its ledger.
///
/// # Errors
/// The first breach.
pub fn check(region: &Region, ledger: &Ledger) -> Result<(), Breach> {
    inv_1_one_live_claim(region)?;
    inv_2_fences_rise(region)?;
    inv_4_one_owner(region)?;
    inv_6_pending_is_seen(region)?;
    inv_7_events_tell_all(region, ledger)?;
    inv_8_everything_ends(region)?;
    bounds_hold(region)
}
