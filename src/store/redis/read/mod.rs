//! Reading a region: plain commands in a transaction, so that what is read together belongs
//! together. Nothing is written, not even what is overdue.

mod drivers;
mod events;
mod overview;
mod requests;
mod windows;

use std::sync::Arc;

use redis::{Pipeline, Value, pipe};

use super::{
    Shared,
    keys::RegionKeys,
    link::Lane,
    reply::{bytes, items, list, text},
    stored::StoredRegion,
    wire::{WireError, unpack},
};
use crate::{
    domain::{DriverId, RegionId, RequestId},
    protocol::{MAX_PAGE, Query, RegionRules, Reply, Supply},
    store::StoreError,
};

/// Fields of one read; more come in several.
const CHUNK: usize = 500;

/// Drivers up to which a region's supply is read in one command: about 10 ms of the server's time.
const AT_ONCE: u64 = 20_000;

/// Answers a query.
pub(super) async fn query(
    shared: &Shared,
    region: &RegionId,
    query: Query,
) -> Result<Reply, StoreError> {
    let keys = RegionKeys::new(region);
    let reader = Reader {
        shared,
        keys: &keys,
    };
    Ok(match query {
        Query::Overview => Reply::Overview(Box::new(reader.overview().await?)),
        Query::Driver(id) => Reply::Driver(reader.driver(&id).await?.map(Box::new)),
        Query::Request(id) => {
            let found = reader.requests_by_id(vec![id]).await?;
            Reply::Request(found.into_iter().flatten().next().map(Box::new))
        }
        Query::RequestsById(mut ids) => {
            ids.truncate(MAX_PAGE);
            Reply::RequestsById(reader.requests_by_id(ids).await?)
        }
        Query::Requests {
            state,
            after,
            limit,
        } => Reply::Requests(reader.requests(state, after, limit).await?),
        Query::Claims {
            state,
            after,
            limit,
        } => Reply::Claims(reader.claims(state, after, limit).await?),
        Query::Reports { after, limit } => Reply::Reports(reader.reports(after, limit).await?),
        Query::Report(seq) => Reply::Report(reader.report(seq).await?),
        Query::Events { after, limit } => Reply::Events(reader.events(after, limit).await?),
        Query::Supply => {
            let (now_ms, drivers) = reader.supply().await?;
            Reply::Supply(Supply { now_ms, drivers })
        }
        Query::Snapshot(seq) => Reply::Snapshot(reader.snapshot(seq).await?.map(Box::new)),
    })
}

/// A region being read.
struct Reader<'a> {
    shared: &'a Shared,
    keys: &'a RegionKeys,
}

/// The configuration with the state of a region.
struct Head {
    region: StoredRegion,
    rules: RegionRules,
    document: Arc<str>,
}

impl Head {
    /// From `state`, `rules` and `document`; nothing when there is no such region.
    fn read(fields: &Value) -> Result<Option<Self>, WireError> {
        let [state, rules, document] = items::<3>(list(fields)?)?;
        let Some(state) = bytes(state)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            region: unpack(state)?,
            rules: serde_json::from_str(text(rules)?)?,
            document: text(document)?.into(),
        }))
    }
}

impl Reader<'_> {
    async fn run(&self, pipeline: &Pipeline) -> Result<Vec<Value>, StoreError> {
        let link = &self.shared.link;
        link.read(Lane::Read, &self.keys.meta, pipeline)
            .await
            .map_err(super::unread)
    }

    /// A transaction that begins with the clock and the state.
    fn transaction(&self) -> Pipeline {
        let mut pipeline = pipe();
        pipeline.atomic().cmd("TIME").cmd("HMGET").arg((
            &self.keys.meta,
            "state",
            "rules",
            "document",
        ));
        pipeline
    }

    async fn head(&self) -> Result<Option<Head>, StoreError> {
        let values = self.run(&self.transaction()).await?;
        let [_, head] = items::<2>(&values)?;
        Ok(Head::read(head)?)
    }

    /// Up to [`CHUNK`] members of a set of names, in order, after one of them.
    async fn names<Id: AsName>(
        &self,
        key: &str,
        after: Option<&Id>,
    ) -> Result<Vec<Id>, StoreError> {
        let from = after.map_or_else(|| "-".to_owned(), |id| format!("({}", id.name()));
        let mut pipeline = pipe();
        pipeline
            .cmd("ZRANGEBYLEX")
            .arg((key, from, "+", "LIMIT", 0, CHUNK));
        let values = self.run(&pipeline).await?;
        let [page] = items::<1>(&values)?;
        let mut names = Vec::new();
        for name in list(page)? {
            names.push(Id::of(text(name)?)?);
        }
        Ok(names)
    }
}

/// An id that is a member of a set of names.
trait AsName: Sized {
    fn name(&self) -> &str;
    fn of(text: &str) -> Result<Self, WireError>;
}

macro_rules! as_name {
    ($($id:ident),*) => {
        $(impl AsName for $id {
            fn name(&self) -> &str {
                self.as_str()
            }

            fn of(text: &str) -> Result<Self, WireError> {
                Self::new(text).map_err(|_| WireError::Missing("an id that was kept"))
            }
        })*
    };
}
as_name!(DriverId, RequestId);
