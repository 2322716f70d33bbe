//! Reading the region as a whole.

use super::{Head, Reader};
use crate::{
    domain::{UnixMs, WindowSeq},
    protocol::{Counters, RegionView, WindowRecord},
    store::{
        StoreError,
        redis::{
            reply::{bytes, clock, count, items, pairs},
            wire::unpack,
        },
    },
};

impl Reader<'_> {
    pub(super) async fn overview(&self) -> Result<RegionView, StoreError> {
        let keys = self.keys;
        let mut pipeline = self.transaction();
        pipeline.cmd("HGETALL").arg(&keys.windows);
        for (command, key) in [
            ("ZCARD", &keys.pending),
            ("HLEN", &keys.requests),
            ("ZCARD", &keys.offered),
            ("ZCARD", &keys.trips),
            ("HLEN", &keys.pos),
            ("XLEN", &keys.events),
        ] {
            pipeline.cmd(command).arg(key);
        }
        pipeline.cmd("ZRANGE").arg((&keys.due, 0, 0, "WITHSCORES"));
        let values = self.run(&pipeline).await?;
        let [
            time,
            head,
            windows,
            pending,
            requests,
            offered,
            trips,
            drivers,
            events,
            due,
        ] = items::<10>(&values)?;
        let Some(head) = Head::read(head)? else {
            return Err(StoreError::UnknownRegion);
        };
        let now = clock(time)?;
        let due = pairs(due)?;
        let mut unsealed: Vec<WindowRecord> = Vec::new();
        for (_, record) in pairs(windows)? {
            unsealed.push(unpack(bytes(record)?.unwrap_or_default())?);
        }
        unsealed.sort_by_key(|window| window.seq);
        let available = self.available(&head.rules).await?;
        let region = &head.region;
        let sealed = region.last_sealed;
        let last_window = match sealed.get() {
            0 => None,
            last => self.reports(WindowSeq::new(last - 1), 1).await?.pop(),
        };
        Ok(RegionView {
            now_ms: now.ms(),
            epoch: region.epoch,
            leader: region
                .leader
                .clone()
                .filter(|leader| leader.leads_at(now.ms())),
            generation: region.generation,
            quarantined_until_ms: region
                .quarantined_until_ms
                .filter(|&until| now.ms() < until),
            config_version: region.config_version,
            pending: count(pending)? as u32,
            requests: count(requests)? as u32,
            available,
            offered: count(offered)? as u32,
            on_trip: count(trips)? as u32,
            drivers: count(drivers)? as u32,
            windows: unsealed,
            last_window,
            last_event: region.last_event,
            events_kept: count(events)? as u32,
            next_due_ms: match due.first() {
                Some((_, at)) => Some(UnixMs::new(count(at)? as i64)),
                None => None,
            },
            counters: Counters {
                double_claims: region.double_claims,
                fences_not_risen: region.fences_not_risen,
            },
            rules: head.rules,
            document: head.document,
        })
    }
}
