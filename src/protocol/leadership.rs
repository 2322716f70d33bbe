//! Leadership of a region: one node decides its windows, under a lease and an epoch.
//!
//! A lease promises nothing by itself (a paused leader does not notice that it is over). What
//! protects the region is that windows belong to an owner, and that an epoch that was followed by
//! another is refused.

use serde::{Deserialize, Serialize};

use super::{mutation::Mutation, region::Region};
use crate::domain::{DurationMs, Epoch, NodeId, Nonce, StoreTime, UnixMs};

/// Longest leadership lease, in milliseconds.
pub const MAX_LEADER_LEASE_MS: DurationMs = DurationMs::new(60_000);

/// Who leads.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Leader {
    /// The node.
    pub node: NodeId,
    /// The number that it drew for this leadership.
    pub nonce: Nonce,
    /// End of its lease (exclusive).
    pub until_ms: UnixMs,
}

impl Leader {
    /// Whether the lease runs at `now`. One that ends later than any lease may was given by a clock
    /// that was set back since.
    pub fn leads_at(&self, now: UnixMs) -> bool {
        now < self.until_ms && self.until_ms - now <= MAX_LEADER_LEASE_MS
    }
}

/// The leadership of a region.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Leadership {
    /// The last epoch given out.
    pub epoch: Epoch,
    /// Who holds it; the lease may be over.
    pub leader: Option<Leader>,
}

/// Asks for the leadership.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AcquireLeadership {
    /// The node.
    pub node: NodeId,
    /// Drawn once an attempt; a repeat carries the same.
    pub nonce: Nonce,
    /// Length of the lease.
    pub lease_ms: DurationMs,
}

/// Keeps the leadership.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RenewLeadership {
    /// The leadership.
    pub epoch: Epoch,
    /// The leader's number.
    pub nonce: Nonce,
    /// Length of the lease from now on.
    pub lease_ms: DurationMs,
}

/// Gives the leadership up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResignLeadership {
    /// The leadership.
    pub epoch: Epoch,
    /// The leader's number.
    pub nonce: Nonce,
}

/// The caller leads the region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Leads {
    /// The leadership.
    pub epoch: Epoch,
    /// End of the lease, by the store's clock.
    pub until_ms: UnixMs,
}

/// The caller does not lead the region.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum LeadershipRefusal {
    /// Another node leads.
    #[error("{node} leads in epoch {epoch} until {until_ms}")]
    Held {
        /// The node.
        node: NodeId,
        /// Its leadership.
        epoch: Epoch,
        /// End of its lease.
        until_ms: UnixMs,
        /// How long that is from now, for those whose clock is another.
        left_ms: DurationMs,
    },
    /// The leadership is over: stop at once.
    #[error("the leadership is over")]
    Lost,
}

impl Region {
    /// Who leads at `now`.
    pub fn leader(&self, now: StoreTime) -> Option<&Leader> {
        let leader = self.leadership.leader.as_ref();
        leader.filter(|leader| leader.leads_at(now.ms()))
    }

    pub(crate) fn leads(&self, epoch: Epoch, nonce: Nonce, now: StoreTime) -> bool {
        epoch == self.leadership.epoch
            && self.leader(now).is_some_and(|leader| leader.nonce == nonce)
    }

    /// Gives the leadership to who asks while nobody leads; a repeat keeps its epoch.
    pub(crate) fn acquire(
        &mut self,
        ask: &AcquireLeadership,
        now: StoreTime,
    ) -> Result<Leads, LeadershipRefusal> {
        let until_ms = lease_end(ask.lease_ms, now);
        if let Some(leader) = self.leader(now) {
            if leader.node == ask.node && leader.nonce == ask.nonce {
                return Ok(self.lead_until(until_ms));
            }
            if !self.has(Mutation::LeaseOfLeaderIgnored) {
                return Err(LeadershipRefusal::Held {
                    node: leader.node.clone(),
                    epoch: self.leadership.epoch,
                    until_ms: leader.until_ms,
                    left_ms: leader.until_ms - now.ms(),
                });
            }
        }
        self.leadership = Leadership {
            epoch: self.leadership.epoch.rise(now),
            leader: Some(Leader {
                node: ask.node.clone(),
                nonce: ask.nonce,
                until_ms,
            }),
        };
        Ok(Leads {
            epoch: self.leadership.epoch,
            until_ms,
        })
    }

    /// Makes the lease end later. A lease that is over is lost, even if nobody took it yet.
    pub(crate) fn renew(
        &mut self,
        renewal: &RenewLeadership,
        now: StoreTime,
    ) -> Result<Leads, LeadershipRefusal> {
        if !self.leads(renewal.epoch, renewal.nonce, now) {
            return Err(LeadershipRefusal::Lost);
        }
        Ok(self.lead_until(lease_end(renewal.lease_ms, now)))
    }

    /// Gives the leadership up; done before is done.
    pub(crate) fn resign(
        &mut self,
        resignation: &ResignLeadership,
    ) -> Result<(), LeadershipRefusal> {
        if resignation.epoch != self.leadership.epoch {
            return Err(LeadershipRefusal::Lost);
        }
        match &self.leadership.leader {
            Some(leader) if leader.nonce != resignation.nonce => Err(LeadershipRefusal::Lost),
            _ => {
                self.leadership.leader = None;
                Ok(())
            }
        }
    }

    fn lead_until(&mut self, until_ms: UnixMs) -> Leads {
        let epoch = self.leadership.epoch;
        let until_ms = self.leadership.leader.as_mut().map_or(until_ms, |leader| {
            leader.until_ms = leader.until_ms.max(until_ms);
            leader.until_ms
        });
        Leads { epoch, until_ms }
    }
}

fn lease_end(lease: DurationMs, now: StoreTime) -> UnixMs {
    now.ms() + lease.clamp(DurationMs::new(1), MAX_LEADER_LEASE_MS)
}
