//! Quiescence: whatever was reached, when every message is lost and only the sweep goes on, all ends.

use super::{
    bounds::{Bounds, TICK_MS},
    held::{Held, Message, Moment},
};
use crate::protocol::{
    ClaimPhase, Command, RequestState, Sweep,
    invariants::{Breach, Invariant, hold},
};

/// Ticks after which every lease, deadline and quarantine is over, and no trip yet.
const LEASES_OVER: u8 = 5;
/// Ticks after which also trips and memories are.
const ALL_OVER: u8 = 40;

/// Shows that nothing is held for ever: first no claim is left but trips that are under way, and
/// nobody waits; in the end nothing is left at all.
///
/// # Errors
/// What would stay.
pub(super) fn check(held: &Held, moment: Moment, bounds: &Bounds) -> Result<(), Breach> {
    let mut held = held.clone();
    let mut tick = moment.tick;
    for wait in [LEASES_OVER, ALL_OVER, ALL_OVER, ALL_OVER] {
        tick += wait;
        sweep(&mut held, Moment { tick, ..moment }, bounds)?;
        if wait == LEASES_OVER {
            only_trips_are_left(&held)?;
        }
    }
    let Some(region) = &held.region else {
        return Ok(());
    };
    let left = [
        region.drivers().len(),
        region.requests().len(),
        region.pending.len(),
        region.own_windows.len(),
        region.due.len(),
    ];
    hold!(
        Inv8,
        left == [0; 5],
        "left for ever: {left:?} ({TICK_MS} ms a tick)"
    );
    Ok(())
}

/// Sweeps until nothing is due; the first sweep may find another generation.
fn sweep(held: &mut Held, moment: Moment, bounds: &Bounds) -> Result<(), Breach> {
    for _ in 0..3 {
        let Some(region) = &held.region else { break };
        let message = Message {
            command: Command::Sweep(Sweep {}),
            known: region.generation(),
        };
        let taken = held.take(&message, moment, bounds);
        taken.verdict?;
        *held = taken.held;
        if taken.answer.is_ok() {
            break;
        }
    }
    Ok(())
}

fn only_trips_are_left(held: &Held) -> Result<(), Breach> {
    let Some(region) = &held.region else {
        return Ok(());
    };
    for (id, driver) in region.drivers() {
        let on_trip = driver
            .claim
            .as_ref()
            .is_none_or(|claim| matches!(claim.phase, ClaimPhase::OnTrip { .. }));
        hold!(Inv1, on_trip, "driver {id} leaks: {:?}", driver.claim);
    }
    for (id, request) in region.requests() {
        let open = matches!(
            request.state,
            RequestState::Pending | RequestState::Assigned
        );
        hold!(Inv6, !open, "request {id} never ends: {:?}", request.state);
    }
    Ok(())
}
