//! Holding the leadership of a region: under a lease, judged by this node's own monotonic clock.
//!
//! A leader takes its timestamp *before* an acquisition or renewal is sent and stops claiming at
//! start + lease − margin: whatever the store's answer took, its own view of the lease is the
//! shorter one. That keeps a healthy leader from working in vain; what protects the region from an
//! unhealthy one is the store, which refuses an epoch that was followed by another (INV-4).

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use tokio::{
    sync::watch,
    time::{Duration, sleep, timeout},
};

use crate::{
    domain::{DurationMs, Epoch, NodeId, Nonce, RegionId},
    protocol::{AcquireLeadership, LeadershipRefusal, RenewLeadership, ResignLeadership},
    store::{Store, StoreError},
};

/// Times of a leadership. `lease > renew_deadline > 1.2 × retry` is checked with the node's
/// configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTimes {
    /// Life of the lease after each renewal.
    pub lease: Duration,
    /// A leader that could not renew for this long gives up by itself.
    pub renew_deadline: Duration,
    /// Time between two tries.
    pub retry: Duration,
    /// A leader stops claiming this long before its lease is over.
    pub margin: Duration,
}

impl Default for LeaseTimes {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(6),
            renew_deadline: Duration::from_secs(4),
            retry: Duration::from_secs(1),
            margin: Duration::from_millis(500),
        }
    }
}

/// A leadership this node holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lead {
    /// Its version.
    pub epoch: Epoch,
    /// The number this node drew for it.
    pub nonce: Nonce,
    /// When this node stops claiming, unless it renews before.
    pub until: Instant,
}

impl Lead {
    /// Whether this node may still claim.
    pub fn holds(&self) -> bool {
        Instant::now() < self.until
    }
}

/// What a node is to do for a region, shared by who holds its leadership and who decides its
/// windows.
#[derive(Debug, Default)]
pub struct Duty {
    /// The region is this node's share: it asks for the leadership as soon as nobody has it.
    wanted: watch::Sender<bool>,
    /// A window is being decided: the leadership is not handed over before it is sealed.
    deciding: AtomicBool,
}

impl Duty {
    /// Says whether the region is this node's share.
    pub fn want(&self, wanted: bool) {
        self.wanted
            .send_if_modified(|before| std::mem::replace(before, wanted) != wanted);
    }

    fn is_wanted(&self) -> bool {
        *self.wanted.borrow()
    }

    /// Another node is to lead the region, and no window is on its way.
    fn may_hand_over(&self) -> bool {
        !self.is_wanted() && !self.deciding.load(Ordering::Relaxed)
    }

    /// Says whether a window is being decided.
    pub fn decide(&self, deciding: bool) {
        self.deciding.store(deciding, Ordering::Relaxed);
    }
}

/// Holds the leadership of one region for one node, as far as it can, until `stop` turns true; then
/// resigns. `held` always shows the present state.
///
/// A region that is another node's share is handed over between two windows. It is asked for now
/// and then all the same, in case the other node cannot lead it.
pub async fn hold(
    store: Arc<dyn Store>,
    region: RegionId,
    node: NodeId,
    times: LeaseTimes,
    duty: Arc<Duty>,
    held: Arc<watch::Sender<Option<Lead>>>,
    mut stop: watch::Receiver<bool>,
) {
    let mut lead: Option<Lead> = None;
    let mut asker = Asker {
        store: &*store,
        region: &region,
        node: &node,
        times,
        asking: None,
        free_at: Instant::now(),
    };
    let mut next_ask = Instant::now() + 2 * times.lease;
    let mut keep_until = Instant::now();
    let mut handed_over: Option<Instant> = None;
    let mut wanted = duty.wanted.subscribe();
    while !*stop.borrow() {
        let before = lead;
        lead = match lead {
            Some(lead) if duty.may_hand_over() && Instant::now() >= keep_until => {
                held.send_replace(None);
                resign(&*store, &region, times, lead).await;
                next_ask = Instant::now() + 2 * times.lease;
                handed_over = Some(Instant::now());
                None
            }
            Some(lead) => renew(&*store, &region, times, lead).await,
            None if duty.is_wanted() || Instant::now() >= next_ask => {
                next_ask = Instant::now() + 2 * times.lease;
                if handed_over.is_some_and(|at| at.elapsed() < 4 * times.lease) {
                    // whose share it is did not take it when it could: it gets a chance later
                    keep_until = Instant::now() + 4 * times.lease;
                }
                asker.acquire().await
            }
            None => None,
        };
        held.send_if_modified(|shown| std::mem::replace(shown, lead) != lead);
        if let (None, Some(lost)) = (lead, before) {
            if duty.is_wanted() {
                tracing::warn!(%region, epoch = lost.epoch.get(), "leadership lost");
            } else {
                tracing::info!(%region, epoch = lost.epoch.get(), "leadership handed over");
            }
        } else if let (Some(won), None) = (lead, before) {
            tracing::info!(%region, epoch = won.epoch.get(), "leadership won");
        }
        // the lease of a leader that died is over at a known time: this node is there then
        let until_free = asker.free_at.saturating_duration_since(Instant::now());
        let wait = if lead.is_none() && duty.is_wanted() && !until_free.is_zero() {
            until_free.min(times.retry)
        } else {
            times.retry
        };
        tokio::select! {
            () = sleep(wait) => {}
            _ = wanted.changed() => {}
            _ = stop.changed() => {}
        }
    }
    if let Some(lead) = lead {
        held.send_replace(None);
        resign(&*store, &region, times, lead).await;
    }
}

async fn resign(store: &dyn Store, region: &RegionId, times: LeaseTimes, lead: Lead) {
    let Lead { epoch, nonce, .. } = lead;
    // a resignation that is lost only costs the others a lease
    let resignation = store.resign(region, ResignLeadership { epoch, nonce });
    let _ = timeout(times.retry, resignation).await;
}

/// Who asks for a leadership.
struct Asker<'a> {
    store: &'a dyn Store,
    region: &'a RegionId,
    node: &'a NodeId,
    times: LeaseTimes,
    /// Kept while its outcome is not known: the repeat gets the first answer (INV-10).
    asking: Option<AcquireLeadership>,
    /// When the present leader's lease ends, as it was told last.
    free_at: Instant,
}

impl Asker<'_> {
    async fn acquire(&mut self) -> Option<Lead> {
        let times = self.times;
        let ask = self.asking.take().unwrap_or_else(|| AcquireLeadership {
            node: self.node.clone(),
            nonce: draw_nonce(),
            lease_ms: in_ms(times.lease),
        });
        let started = Instant::now();
        match self.store.acquire(self.region, ask.clone()).await {
            Ok(Ok(leads)) => {
                let until = started + times.lease.saturating_sub(times.margin);
                Some(Lead {
                    epoch: leads.epoch,
                    nonce: ask.nonce,
                    until,
                })
            }
            Ok(Err(LeadershipRefusal::Held { left_ms, .. })) => {
                let left = u64::try_from(left_ms.get()).unwrap_or(0);
                self.free_at = Instant::now() + Duration::from_millis(left + 1);
                None
            }
            Ok(Err(LeadershipRefusal::Lost)) => None,
            Err(error) => {
                tracing::debug!(region = %self.region, %error, "leadership not acquired");
                self.asking = matches!(error, StoreError::OutcomeUnknown(_)).then_some(ask);
                None
            }
        }
    }
}

async fn renew(
    store: &dyn Store,
    region: &RegionId,
    times: LeaseTimes,
    lead: Lead,
) -> Option<Lead> {
    let renewal = RenewLeadership {
        epoch: lead.epoch,
        nonce: lead.nonce,
        lease_ms: in_ms(times.lease),
    };
    let started = Instant::now();
    match store.renew(region, renewal).await {
        Ok(Ok(_)) => Some(Lead {
            until: started + times.lease.saturating_sub(times.margin),
            ..lead
        }),
        Ok(Err(LeadershipRefusal::Held { .. } | LeadershipRefusal::Lost)) => None,
        Err(error) => {
            // not known: the old lease still runs, as far as this node has renewed it lately
            tracing::debug!(%region, %error, "leadership not renewed");
            let renewed = lead
                .until
                .checked_sub(times.lease.saturating_sub(times.margin));
            let lately = renewed.is_none_or(|renewed| renewed.elapsed() < times.renew_deadline);
            (lately && lead.holds()).then_some(lead)
        }
    }
}

/// A number that no other attempt draws.
pub fn draw_nonce() -> Nonce {
    // without a source of randomness no two nodes could be told apart; the time is the next best
    let drawn = getrandom::u64().unwrap_or_else(|_| {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |since| since.as_nanos() as u64)
    });
    // a nonce holds 53 bits: it saturates above, and all of them would be the same
    Nonce::new(drawn >> 11)
}

fn in_ms(duration: Duration) -> DurationMs {
    DurationMs::new(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_nonces_are_the_same() {
        let drawn: BTreeSet<u64> = (0..1000).map(|_| draw_nonce().get()).collect();
        assert_eq!(drawn.len(), 1000);
    }
}
