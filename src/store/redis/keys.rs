//! The keys of a region: a fixed set under one hash tag, so that a region is one slot of a cluster
//! and every script declares the same keys.

use crate::domain::RegionId;

/// The registry: region → generation. It lies in a slot of its own, so no script of a region reads
/// it.
pub(super) const REGISTRY: &str = "kheya:regions";

/// The nodes that are alive: name → until when.
pub(super) const NODES: &str = "kheya:nodes";

/// What the start check writes and takes away again; its region has a name that none can have.
pub(super) const PERMISSIONS: [&str; 4] = [
    "kheya:{Start}:hash",
    "kheya:{Start}:set",
    "kheya:{Start}:text",
    "kheya:{Start}:stream",
];

macro_rules! keys {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// The keys of one region, in the order in which `region.lua` declares them.
        #[derive(Debug, Clone)]
        pub(super) struct RegionKeys {
            $($(#[$doc])* pub(super) $name: String,)*
        }

        impl RegionKeys {
            /// The keys of `region`.
            pub(super) fn new(region: &RegionId) -> Self {
                Self {
                    $($name: format!("kheya:{{{region}}}:{}", stringify!($name)),)*
                }
            }

            /// All of them, as a script takes them.
            pub(super) fn all(&self) -> Vec<&str> {
                vec![$(self.$name.as_str()),*]
            }
        }
    };
}

keys!(
    /// Hash: `state` (generation, quarantine, leader, counters; msgpack), `rules` and
    /// `document` (JSON).
    meta,
    /// The last fence, in digits. Never expires.
    fence,
    /// Hash: driver → claim, cool-downs, undelivered offer (msgpack); only of drivers that have one.
    drivers,
    /// Hash: driver → newest ping (msgpack); empty for a driver that never pinged.
    pos,
    /// Hash: request → record (msgpack).
    requests,
    /// Sorted set of request ids, all of score 0: their order.
    ids,
    /// Sorted set: pending request → since when it waits.
    pending,
    /// Sorted set: due key → when.
    due,
    /// Sorted set of the drivers that are asked, all of score 0.
    offered,
    /// Sorted set of the drivers on a trip, all of score 0.
    trips,
    /// Hash: window → record, of unsealed windows (msgpack).
    windows,
    /// Hash: `window:number` → answered claim batch of an unsealed window (msgpack).
    batches,
    /// Hash: window → report; `d<window>` → decisions (JSON).
    reports,
    /// Hash: own window → record (msgpack).
    own,
    /// Hash: answers (`r:<id>`), batches (`b<n>:<id>`) and claims (`c<n>:<id>`) of own windows.
    ownparts,
    /// Stream: the outbox, ids `<event id>-0`.
    events,
    /// What changed last (msgpack): read by nodes to know that it is time to look.
    signal,
);
