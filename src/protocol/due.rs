//! Due times: everything of a region that ends by itself, in one ordered set.
//!
//! A due time is a hint, never a decision: whoever acts on one looks at the record again in the
//! same step (INV-3), so a hint that is early, late or repeated does no harm.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::{DriverId, RequestId, UnixMs, WindowId, WindowSeq};

/// What ends.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DueKey {
    /// A driver's lease or trip limit; without a claim its record.
    Driver(DriverId),
    /// A pending request's wait; of an ended one the memory.
    Request(RequestId),
    /// A window's collecting.
    WindowClose(WindowSeq),
    /// The memory of a caller's own window.
    OwnWindow(WindowId),
    /// The region's quarantine.
    Quarantine,
}

/// The due times of a region: at most one a key, ordered by (time, key).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct DueSet {
    at: BTreeMap<DueKey, UnixMs>,
    order: BTreeSet<(UnixMs, DueKey)>,
}

impl DueSet {
    /// Sets or moves the due time of `key`.
    pub(crate) fn set(&mut self, key: DueKey, at: UnixMs) {
        if let Some(before) = self.at.insert(key.clone(), at) {
            if before == at {
                return;
            }
            self.order.remove(&(before, key.clone()));
        }
        self.order.insert((at, key));
    }

    /// Sets the due time of `key` unless it has one.
    pub(crate) fn set_if_absent(&mut self, key: DueKey, at: UnixMs) {
        if !self.at.contains_key(&key) {
            self.set(key, at);
        }
    }

    /// Forgets `key`.
    pub(crate) fn remove(&mut self, key: &DueKey) {
        if let Some(at) = self.at.remove(key) {
            self.order.remove(&(at, key.clone()));
        }
    }

    /// Takes the first key that is due at `now`.
    pub(crate) fn pop(&mut self, now: UnixMs) -> Option<DueKey> {
        if self.order.first()?.0 > now {
            return None;
        }
        let (_, key) = self.order.pop_first()?;
        self.at.remove(&key);
        Some(key)
    }

    /// The earliest due time.
    pub fn next(&self) -> Option<UnixMs> {
        self.order.first().map(|(at, _)| *at)
    }

    /// The due time of `key`.
    pub fn at(&self, key: &DueKey) -> Option<UnixMs> {
        self.at.get(key).copied()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether nothing ends by itself.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}
