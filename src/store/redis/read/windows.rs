//! Reading windows: reports, and what a decision needs.

use std::sync::Arc;

use redis::pipe;

use super::{AsName as _, Head, Reader};
use crate::{
    domain::{RequestId, WindowSeq},
    protocol::{
        MAX_PAGE, ReportView, RequestState, Snapshot, SnapshotRequest, WindowReport, driver_view,
        rules::KEPT_REPORTS,
    },
    store::{
        StoreError,
        redis::{
            reply::{bytes, items, list, text},
            wire::{KeptReport, unpack},
        },
    },
};

impl Reader<'_> {
    pub(super) async fn reports(
        &self,
        after: WindowSeq,
        limit: usize,
    ) -> Result<Vec<Arc<WindowReport>>, StoreError> {
        let Some(head) = self.head().await? else {
            return Err(StoreError::UnknownRegion);
        };
        let last = head.region.last_sealed.get();
        let first = (after.get() + 1).max((last + 1).saturating_sub(KEPT_REPORTS as u64));
        let limit = limit.min(MAX_PAGE) as u64;
        let seqs: Vec<u64> = (first..=last.min(first.saturating_add(limit) - 1)).collect();
        if seqs.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let mut pipeline = pipe();
        pipeline.cmd("HMGET").arg(&self.keys.reports).arg(seqs);
        let values = self.run(&pipeline).await?;
        let [reports] = items::<1>(&values)?;
        let mut told = Vec::new();
        for report in list(reports)? {
            if let Some(report) = bytes(report)? {
                told.push(Arc::new(unpack::<KeptReport>(report)?.told()?));
            }
        }
        Ok(told)
    }

    pub(super) async fn report(&self, seq: WindowSeq) -> Result<Option<ReportView>, StoreError> {
        let mut pipeline = self.transaction();
        pipeline
            .cmd("HMGET")
            .arg((&self.keys.reports, seq.get().to_string(), format!("d{seq}")));
        let values = self.run(&pipeline).await?;
        let [_, head, fields] = items::<3>(&values)?;
        if Head::read(head)?.is_none() {
            return Err(StoreError::UnknownRegion);
        }
        let [report, decisions] = items::<2>(list(fields)?)?;
        let Some(report) = bytes(report)? else {
            return Ok(None);
        };
        let decisions = match bytes(decisions)? {
            Some(_) => Some(text(decisions)?.into()),
            None => None,
        };
        Ok(Some(ReportView {
            report: Arc::new(unpack::<KeptReport>(report)?.told()?),
            decisions,
        }))
    }

    pub(super) async fn snapshot(&self, seq: WindowSeq) -> Result<Option<Snapshot>, StoreError> {
        let mut pipeline = self.transaction();
        pipeline
            .cmd("HGET")
            .arg((&self.keys.windows, seq.get().to_string()));
        pipeline.cmd("ZRANGE").arg((&self.keys.pending, 0, -1));
        let values = self.run(&pipeline).await?;
        let [_, head, window, pending] = items::<4>(&values)?;
        let Some(head) = Head::read(head)? else {
            return Err(StoreError::UnknownRegion);
        };
        let Some(window) = bytes(window)? else {
            return Ok(None);
        };
        let mut ids = Vec::new();
        for id in list(pending)? {
            ids.push(RequestId::of(text(id)?)?);
        }
        let records = self.records(&ids).await?;
        // the last of the reads says what time it is: nobody in it is past a deadline then
        let (now_ms, drivers) = self.drivers().await?;
        let mut requests = Vec::new();
        let mut deferred = 0;
        for record in records.into_iter().flatten() {
            // one that was taken back or taken over since is not pending any more
            let open = record.state == RequestState::Pending
                && record.entered <= seq
                && now_ms <= record.deadline_ms;
            let Some(draft) = record.draft.filter(|_| open) else {
                continue;
            };
            if requests.len() >= head.rules.max_snapshot_requests as usize {
                deferred += 1;
                continue;
            }
            requests.push(SnapshotRequest {
                draft,
                requested_at_ms: record.requested_at_ms,
                deadline_ms: record.deadline_ms,
                left_over: (seq.get() - record.entered.get()) as u32,
                attempts: record.attempts,
            });
        }
        let views = drivers
            .iter()
            .map(|(id, record)| driver_view(id, record, now_ms));
        Ok(Some(Snapshot {
            now_ms,
            generation: head.region.generation,
            window: unpack(window)?,
            config_version: head.region.config_version,
            rules: head.rules,
            document: head.document,
            requests,
            deferred,
            drivers: views.collect(),
        }))
    }
}
