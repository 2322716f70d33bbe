//! Leadership of a region: held under a lease, judged by this node's own monotonic clock.
//!
//! A leader takes its timestamp *before* an acquisition or renewal is sent and stops claiming at
//! start + lease − margin: whatever the store's answer took, its own view of the lease is the
//! shorter one. That keeps a healthy leader from working in vain; what protects the region from an
//! unhealthy one is the store, which refuses an epoch that was followed by another (INV-4).

use std::{sync::Arc, time::Instant};

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

/// Holds the leadership of one region for one node, as far as it can, until `stop` turns true; then
/// resigns. `held` always shows the present state.
pub async fn hold(
    store: Arc<dyn Store>,
    region: RegionId,
    node: NodeId,
    times: LeaseTimes,
    held: Arc<watch::Sender<Option<Lead>>>,
    mut stop: watch::Receiver<bool>,
) {
    let mut lead: Option<Lead> = None;
    // kept while its outcome is not known: the repeat gets the first answer (INV-10)
    let mut asking: Option<AcquireLeadership> = None;
    while !*stop.borrow() {
        let before = lead;
        lead = match lead {
            Some(lead) => renew(&*store, &region, times, lead).await,
            None => acquire(&*store, &region, &node, times, &mut asking).await,
        };
        held.send_if_modified(|shown| std::mem::replace(shown, lead) != lead);
        if let (None, Some(lost)) = (lead, before) {
            tracing::warn!(%region, epoch = lost.epoch.get(), "leadership lost");
        } else if let (Some(won), None) = (lead, before) {
            tracing::info!(%region, epoch = won.epoch.get(), "leadership won");
        }
        tokio::select! {
            () = sleep(times.retry) => {}
            _ = stop.changed() => {}
        }
    }
    if let Some(Lead { epoch, nonce, .. }) = lead {
        held.send_replace(None);
        // a resignation that is lost only costs the others a lease
        let _ = timeout(
            times.retry,
            store.resign(&region, ResignLeadership { epoch, nonce }),
        )
        .await;
    }
}

async fn acquire(
    store: &dyn Store,
    region: &RegionId,
    node: &NodeId,
    times: LeaseTimes,
    asking: &mut Option<AcquireLeadership>,
) -> Option<Lead> {
    let ask = asking.take().unwrap_or_else(|| AcquireLeadership {
        node: node.clone(),
        nonce: draw_nonce(),
        lease_ms: in_ms(times.lease),
    });
    let started = Instant::now();
    match store.acquire(region, ask.clone()).await {
        Ok(Ok(leads)) => {
            let until = started + times.lease.saturating_sub(times.margin);
            Some(Lead {
                epoch: leads.epoch,
                nonce: ask.nonce,
                until,
            })
        }
        Ok(Err(_)) => None,
        Err(error) => {
            tracing::debug!(%region, %error, "leadership not acquired");
            *asking = matches!(error, StoreError::OutcomeUnknown(_)).then_some(ask);
            None
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
