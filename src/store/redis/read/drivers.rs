//! Reading drivers and their claims.

use std::collections::BTreeMap;

use redis::{Value, pipe};

use super::{AT_ONCE, AsName as _, CHUNK, Head, Reader};
use crate::{
    domain::{DriverId, UnixMs},
    protocol::{
        Claim, ClaimState, ClaimView, DriverRecord, DriverView, MAX_PAGE, Page, Presence,
        RegionRules, driver_view,
    },
    store::{
        StoreError,
        redis::{
            reply::{bytes, clock, count, items, list, pairs, text},
            stored,
            wire::WireError,
        },
    },
};

impl Reader<'_> {
    /// Drivers that could be chosen.
    pub(super) async fn available(&self, rules: &RegionRules) -> Result<u32, StoreError> {
        let (now_ms, drivers) = self.drivers().await?;
        let fresh = |presence: &Presence| presence.is_fresh(rules, now_ms);
        let chosen = drivers.values().filter(|record| {
            record.claim.is_none()
                && record.is_ready()
                && record.presence.as_ref().is_some_and(fresh)
        });
        Ok(chosen.count() as u32)
    }

    /// Every driver, by id.
    pub(super) async fn drivers(
        &self,
    ) -> Result<(UnixMs, BTreeMap<DriverId, DriverRecord>), StoreError> {
        let keys = self.keys;
        let mut pipeline = pipe();
        pipeline.cmd("TIME").cmd("HLEN").arg(&keys.pos);
        let values = self.run(&pipeline).await?;
        let [time, known] = items::<2>(&values)?;
        let mut now_ms = clock(time)?.ms();
        let (positions, records) = if count(known)? <= AT_ONCE {
            let mut pipeline = pipe();
            pipeline.atomic().cmd("TIME");
            pipeline.cmd("HGETALL").arg(&keys.pos);
            pipeline.cmd("HGETALL").arg(&keys.drivers);
            let values = self.run(&pipeline).await?;
            let [time, positions, records] = items::<3>(&values)?;
            now_ms = clock(time)?.ms();
            (fields(positions)?, fields(records)?)
        } else {
            // so many that one command would hold the server up: a claim decides in the end
            (self.scan(&keys.pos).await?, self.scan(&keys.drivers).await?)
        };
        let mut drivers = BTreeMap::new();
        for (id, position) in &positions {
            let record = records.get(id).map(Vec::as_slice);
            drivers.insert(DriverId::of(id)?, stored::driver(position, record)?);
        }
        Ok((now_ms, drivers))
    }

    pub(super) async fn scan(&self, key: &str) -> Result<BTreeMap<String, Vec<u8>>, StoreError> {
        let mut found = BTreeMap::new();
        let mut cursor = 0;
        loop {
            let mut pipeline = pipe();
            pipeline.cmd("HSCAN").arg((key, cursor, "COUNT", 4 * CHUNK));
            let values = self.run(&pipeline).await?;
            let [page] = items::<1>(&values)?;
            let [next, entries] = items::<2>(list(page)?)?;
            found.extend(fields(entries)?);
            cursor = count(next)?;
            if cursor == 0 {
                return Ok(found);
            }
        }
    }

    pub(super) async fn supply(&self) -> Result<(UnixMs, Vec<DriverView>), StoreError> {
        if self.head().await?.is_none() {
            return Err(StoreError::UnknownRegion);
        }
        let (now_ms, drivers) = self.drivers().await?;
        let views = drivers
            .iter()
            .map(|(id, record)| driver_view(id, record, now_ms));
        Ok((now_ms, views.collect()))
    }

    pub(super) async fn driver(&self, id: &DriverId) -> Result<Option<DriverView>, StoreError> {
        let mut pipeline = self.transaction();
        pipeline.cmd("HGET").arg((&self.keys.pos, id.as_str()));
        pipeline.cmd("HGET").arg((&self.keys.drivers, id.as_str()));
        let values = self.run(&pipeline).await?;
        let [time, head, position, record] = items::<4>(&values)?;
        if Head::read(head)?.is_none() {
            return Err(StoreError::UnknownRegion);
        }
        let Some(position) = bytes(position)? else {
            return Ok(None);
        };
        let record = stored::driver(position, bytes(record)?)?;
        Ok(Some(driver_view(id, &record, clock(time)?.ms())))
    }

    pub(super) async fn claims(
        &self,
        state: Option<ClaimState>,
        after: Option<DriverId>,
        limit: usize,
    ) -> Result<Page<ClaimView, DriverId>, StoreError> {
        if self.head().await?.is_none() {
            return Err(StoreError::UnknownRegion);
        }
        let limit = limit.clamp(1, MAX_PAGE);
        let mut entries = Vec::new();
        let mut from = after;
        loop {
            let mut held: Vec<DriverId> = Vec::new();
            let mut whole = true;
            for (key, of) in [
                (&self.keys.offered, ClaimState::Offered),
                (&self.keys.trips, ClaimState::OnTrip),
            ] {
                if state.is_none_or(|state| state == of) {
                    let names: Vec<DriverId> = self.names(key, from.as_ref()).await?;
                    whole &= names.len() < CHUNK;
                    held.extend(names);
                }
            }
            held.sort_unstable();
            // of two sets only the first of both together are all that there are up to their end
            held.truncate(CHUNK);
            for (id, claim) in self.claims_of(&held).await? {
                if state.is_none_or(|state| claim.state() == state) {
                    entries.push(ClaimView {
                        driver_id: id.clone(),
                        state: claim.state(),
                        claim,
                    });
                }
                if entries.len() == limit {
                    return Ok(Page {
                        entries,
                        next: Some(id),
                    });
                }
            }
            if whole && held.len() < CHUNK {
                return Ok(Page {
                    entries,
                    next: None,
                });
            }
            from = held.pop();
        }
    }

    pub(super) async fn claims_of(
        &self,
        drivers: &[DriverId],
    ) -> Result<Vec<(DriverId, Claim)>, StoreError> {
        if drivers.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = pipe();
        let names: Vec<&str> = drivers.iter().map(DriverId::as_str).collect();
        pipeline.cmd("HMGET").arg(&self.keys.drivers).arg(names);
        let values = self.run(&pipeline).await?;
        let [records] = items::<1>(&values)?;
        let mut claims = Vec::new();
        for (id, record) in drivers.iter().zip(list(records)?) {
            if let Some(record) = bytes(record)?
                && let Some(claim) = stored::claim(record)?
            {
                claims.push((id.clone(), claim));
            }
        }
        Ok(claims)
    }
}

fn fields(value: &Value) -> Result<BTreeMap<String, Vec<u8>>, WireError> {
    let mut found = BTreeMap::new();
    for (name, field) in pairs(value)? {
        let field = bytes(field)?.unwrap_or_default();
        found.insert(text(name)?.to_owned(), field.to_vec());
    }
    Ok(found)
}
