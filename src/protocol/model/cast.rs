//! Who appears: one region, two drivers, two requests, two nodes.

use crate::{
    domain::{
        CostMs, DriverId, NodeId, Nonce, Place, RegionId, RequestId, RiderId, UnixMs, WindowId,
    },
    protocol::{ClaimPair, Command, Fingerprint, OwnPair, Ping, Pings, RequestDraft},
};

use super::bounds::halves;

/// How many drivers and requests there are.
pub(super) const PAIRS: usize = 2;

pub(super) fn region() -> RegionId {
    RegionId::new("dhaka").unwrap()
}

pub(super) fn driver(n: usize) -> DriverId {
    DriverId::new(["d0", "d1"][n]).unwrap()
}

pub(super) fn request(n: usize) -> RequestId {
    RequestId::new(["r0", "r1"][n]).unwrap()
}

pub(super) fn node(n: usize) -> NodeId {
    NodeId::new(["n0", "n1"][n]).unwrap()
}

/// The number that a node draws for its `drawn`-th try to lead.
pub(super) fn election(node: usize, drawn: u8) -> Nonce {
    Nonce::new(10 * (node as u64 + 1) + u64::from(drawn))
}

/// The number by which a node takes windows over.
pub(super) fn watcher(node: usize) -> Nonce {
    Nonce::new(100 + node as u64)
}

/// The number that a node draws for its `begun`-th work on the own window.
pub(super) fn runner(node: usize, begun: u8) -> Nonce {
    Nonce::new(200 + 10 * node as u64 + u64::from(begun))
}

pub(super) fn own_window() -> WindowId {
    WindowId::new("w0").unwrap()
}

pub(super) fn own_body(other: bool) -> Fingerprint {
    Fingerprint::of(if other { b"other" } else { b"first" })
}

fn middle() -> Place {
    Place::new(23.75, 90.39).unwrap()
}

/// The second rider is the less patient one, so that both orders of deadline and lease are met.
pub(super) fn draft(n: usize) -> RequestDraft {
    let mut draft = RequestDraft::at(request(n), middle());
    if n == 1 {
        draft.max_wait_ms = Some(halves(3));
        draft.rider_id = RiderId::new("p1").ok();
    }
    draft
}

/// The same id with another body.
pub(super) fn other_draft(n: usize) -> RequestDraft {
    let mut draft = draft(n);
    draft.dropoff = Some(middle());
    draft
}

pub(super) fn ping(n: usize, at_ms: UnixMs) -> Ping {
    Ping::at(driver(n), middle(), at_ms)
}

pub(super) fn pings(at_ms: UnixMs) -> Command {
    Command::Ping(Pings {
        pings: (0..PAIRS).map(|n| ping(n, at_ms)).collect(),
    })
}

pub(super) fn pair(request_n: usize, driver_n: usize) -> ClaimPair {
    ClaimPair {
        request_id: request(request_n),
        driver_id: driver(driver_n),
        eta: halves(1),
        cost: CostMs::new(15_000),
    }
}

pub(super) fn own_pair(request_n: usize, driver_n: usize) -> OwnPair {
    OwnPair {
        request: draft(request_n).into(),
        driver_id: driver(driver_n),
        eta: halves(1),
        cost: CostMs::new(15_000),
    }
}
