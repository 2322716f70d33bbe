//! Reading requests.

use redis::pipe;

use super::{CHUNK, Reader};
use crate::{
    domain::{DriverId, RequestId},
    protocol::{
        MAX_LOOKED_AT, MAX_PAGE, Page, RequestRecord, RequestState, RequestView, request_view,
    },
    store::{
        StoreError,
        redis::{
            reply::{bytes, items, list},
            stored,
        },
    },
};

impl Reader<'_> {
    /// The records of requests, in the order asked for.
    pub(super) async fn records(
        &self,
        ids: &[RequestId],
    ) -> Result<Vec<Option<RequestRecord>>, StoreError> {
        let mut records = Vec::with_capacity(ids.len());
        for chunk in ids.chunks(CHUNK) {
            let mut pipeline = pipe();
            let asked: Vec<&str> = chunk.iter().map(RequestId::as_str).collect();
            pipeline.cmd("HMGET").arg(&self.keys.requests).arg(asked);
            let values = self.run(&pipeline).await?;
            let [found] = items::<1>(&values)?;
            for record in list(found)? {
                let record = bytes(record)?.map(stored::request).transpose()?;
                records.push(record);
            }
        }
        Ok(records)
    }

    /// Requests as readers see them, with the claims of their drivers.
    pub(super) async fn views(
        &self,
        ids: &[RequestId],
        records: Vec<Option<RequestRecord>>,
    ) -> Result<Vec<Option<RequestView>>, StoreError> {
        let holders: Vec<Option<&DriverId>> = records
            .iter()
            .map(|record| Some(&record.as_ref()?.claims.last()?.driver_id))
            .collect();
        let asked: Vec<&DriverId> = holders.iter().copied().flatten().collect();
        let mut claims = Vec::with_capacity(asked.len());
        for chunk in asked.chunks(CHUNK) {
            let mut pipeline = pipe();
            let names: Vec<&str> = chunk.iter().map(|id| id.as_str()).collect();
            pipeline.cmd("HMGET").arg(&self.keys.drivers).arg(names);
            let values = self.run(&pipeline).await?;
            let [found] = items::<1>(&values)?;
            for record in list(found)? {
                claims.push(match bytes(record)? {
                    Some(record) => stored::claim(record)?,
                    None => None,
                });
            }
        }
        let mut claims = claims.into_iter();
        let held: Vec<_> = holders
            .iter()
            .map(|holder| holder.and_then(|_| claims.next().flatten()))
            .collect();
        let views = ids.iter().zip(&records).zip(&held);
        Ok(views
            .map(|((id, record), claim)| {
                let record = record.as_ref()?;
                Some(request_view(id, record, claim.as_ref()))
            })
            .collect())
    }

    pub(super) async fn requests_by_id(
        &self,
        ids: Vec<RequestId>,
    ) -> Result<Vec<Option<RequestView>>, StoreError> {
        if self.head().await?.is_none() {
            return Err(StoreError::UnknownRegion);
        }
        let records = self.records(&ids).await?;
        self.views(&ids, records).await
    }

    pub(super) async fn requests(
        &self,
        state: Option<RequestState>,
        after: Option<RequestId>,
        limit: usize,
    ) -> Result<Page<RequestView, RequestId>, StoreError> {
        if self.head().await?.is_none() {
            return Err(StoreError::UnknownRegion);
        }
        let limit = limit.clamp(1, MAX_PAGE);
        let (mut ids, mut found) = (Vec::new(), Vec::new());
        let (mut from, mut looked_at) = (after, 0);
        let mut next = None;
        'pages: while next.is_none() {
            let page: Vec<RequestId> = self.names(&self.keys.ids, from.as_ref()).await?;
            let records = self.records(&page).await?;
            for (id, record) in page.iter().zip(records) {
                looked_at += 1;
                let matching = |record: &RequestRecord| state.is_none_or(|s| record.state == s);
                if let Some(record) = record.filter(matching) {
                    ids.push(id.clone());
                    found.push(Some(record));
                }
                if ids.len() == limit || looked_at == MAX_LOOKED_AT {
                    next = Some(id.clone());
                    break 'pages;
                }
            }
            if page.len() < CHUNK {
                break;
            }
            from = page.last().cloned();
        }
        let views = self.views(&ids, found).await?;
        Ok(Page {
            entries: views.into_iter().flatten().collect(),
            next,
        })
    }
}
