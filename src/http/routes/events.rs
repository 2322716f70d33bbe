//! The outbox: cursor pages, long poll, and the same as server-sent events.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use axum::{
    Extension, Json as Answer,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::{
        IntoResponse as _, Response, Sse,
        sse::{Event as SseEvent, KeepAlive},
    },
};
use futures_util::stream::{self, Stream};
use tokio::{
    sync::{OwnedSemaphorePermit, watch},
    time::Instant,
};

use crate::{
    domain::RegionId,
    http::{
        admission::Work,
        fields::integer,
        lifecycle::Phase,
        model::events::{EventBody, EventsPage, type_name},
        paths::{Params, PathId},
        problem::{Code, Problem},
        state::AppState,
        tokens::Caller,
    },
    protocol::{After, Cursor, CursorGone, EventPage},
    store::RegionSignal,
};

/// Silence after which a stream says that it is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Longest time between two looks at whether a stream may go on.
const RECHECK: Duration = Duration::from_secs(5);
/// Events read at once for a stream.
const STREAM_PAGE: usize = 256;
/// Longest wait of a long poll.
const MAX_WAIT_MS: i64 = 30_000;

/// A page of events. Where there is none yet, waits for one up to `wait_ms`.
#[utoipa::path(
    get, path = "/v1/regions/{region}/events", tag = "events",
    params(
        ("region" = String, Path, description = "The region"),
        ("after" = Option<String>, Query, description = "A cursor, or `latest`; left out: from the oldest kept"),
        ("wait_ms" = Option<u32>, Query, description = "Longest wait for an event", minimum = 0, maximum = 30000),
        ("limit" = Option<u32>, Query, description = "Most entries, by default 100", minimum = 1, maximum = 1000),
    ),
    responses((status = 200, description = "The events", body = EventsPage)),
)]
pub(crate) async fn list_events(
    State(app): State<AppState>,
    PathId(region): PathId<RegionId>,
    mut params: Params,
) -> Result<Answer<EventsPage>, Problem> {
    let after = params.text("after", read_after).unwrap_or(After::Oldest);
    let wait_ms = params
        .value("wait_ms", integer(0, MAX_WAIT_MS))
        .unwrap_or_default();
    let limit = params.limit();
    params.close()?;
    let work = if wait_ms == 0 {
        Work::Reads
    } else {
        Work::Followers
    };
    let _permit = app.admission().enter(&region, work).await?;
    let deadline = Instant::now() + Duration::from_millis(wait_ms.unsigned_abs());
    let mut signal = app.store().watch(&region).await?;
    let mut after = after;
    loop {
        signal.mark_unchanged();
        let page = read(&app, &region, after, limit).await?;
        if !page.events.is_empty() || Instant::now() >= deadline {
            return Ok(Answer(EventsPage::new(&region, &page)));
        }
        after = After::Cursor(page.next);
        tokio::select! {
            _ = signal.changed() => {}
            () = tokio::time::sleep_until(deadline) => {}
            // an empty page is a good answer at any time
            () = app.lifecycle().draining() => {
                return Ok(Answer(EventsPage::new(&region, &page)));
            }
        }
    }
}

/// The events as they happen (server-sent events). Resumes after `Last-Event-ID`, or `after`. An
/// event's `id` is its cursor, `event` its type, `data` the event.
#[utoipa::path(
    get, path = "/v1/regions/{region}/events/stream", tag = "events",
    params(
        ("region" = String, Path, description = "The region"),
        ("after" = Option<String>, Query, description = "A cursor, or `latest`; left out: from the oldest kept"),
        ("Last-Event-ID" = Option<String>, Header, description = "The last cursor read; wins over `after`"),
    ),
    responses((status = 200, description = "The stream", body = String, content_type = "text/event-stream")),
)]
pub(crate) async fn stream_events(
    State(app): State<AppState>,
    Extension(caller): Extension<Caller>,
    PathId(region): PathId<RegionId>,
    mut params: Params,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let after = params.text("after", read_after);
    params.close()?;
    let after = last_event_id(&headers)?.or(after).unwrap_or(After::Oldest);
    let permit = app.admission().enter(&region, Work::Followers).await?;
    let signal = app.store().watch(&region).await?;
    // a cursor that is gone is told by the status, before the stream begins
    let first = read(&app, &region, after, STREAM_PAGE).await?;
    let mut follower = Follower {
        app,
        caller,
        region,
        signal,
        after: first.next,
        ready: VecDeque::new(),
        ended: false,
        _permit: permit,
    };
    follower.take(&first);
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    let mut response = Sse::new(follower.into_stream())
        .keep_alive(keep_alive)
        .into_response();
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // proxies of the nginx kind collect a stream unless they are told not to
    let unbuffered = HeaderName::from_static("x-accel-buffering");
    headers.insert(unbuffered, HeaderValue::from_static("no"));
    Ok(response)
}

/// A client that follows a region.
struct Follower {
    app: AppState,
    caller: Caller,
    region: RegionId,
    signal: watch::Receiver<RegionSignal>,
    after: Cursor,
    ready: VecDeque<SseEvent>,
    ended: bool,
    _permit: OwnedSemaphorePermit,
}

impl Follower {
    fn into_stream(self) -> impl Stream<Item = Result<SseEvent, Infallible>> {
        stream::unfold(self, |mut follower| async move {
            let event = follower.next().await?;
            Some((Ok(event), follower))
        })
    }

    /// The next event, read only when the client has taken the one before.
    async fn next(&mut self) -> Option<SseEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.ended || !self.may_go_on() {
                return None;
            }
            // known before the reading: what happened before it is in what is read last
            let last = self.app.lifecycle().phase() >= Phase::Draining;
            self.signal.mark_unchanged();
            match read(
                &self.app,
                &self.region,
                After::Cursor(self.after),
                STREAM_PAGE,
            )
            .await
            {
                Ok(page) => self.take(&page),
                Err(problem) if problem.code() == Code::CursorGone => {
                    self.ended = true;
                    return Some(
                        SseEvent::default()
                            .event("cursor_gone")
                            .data(problem.to_json()),
                    );
                }
                Err(_) if last => return None,
                // the store cannot be reached: the client keeps its place, and looks again later
                Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
            }
            if self.ready.is_empty() {
                if last {
                    return None;
                }
                tokio::select! {
                    changed = self.signal.changed() => self.ended = changed.is_err(),
                    () = self.app.lifecycle().draining() => {}
                    () = tokio::time::sleep(RECHECK) => {}
                }
            }
        }
    }

    /// A token that is taken away ends its streams too.
    fn may_go_on(&self) -> bool {
        let Some(tokens) = self.app.tokens() else {
            return true;
        };
        let current = tokens.current(&self.caller);
        current.is_some_and(|caller| caller.sees(self.region.as_str()))
    }

    fn take(&mut self, page: &EventPage) {
        for event in &page.events {
            let body = EventBody::new(&self.region, page, event);
            // strings and numbers: it always has a JSON form
            let data = serde_json::to_string(&body).unwrap_or_default();
            let event = SseEvent::default()
                .id(body.cursor)
                .event(type_name(event.kind))
                .data(data);
            self.ready.push_back(event);
        }
        self.after = page.next;
    }
}

async fn read(
    app: &AppState,
    region: &RegionId,
    after: After,
    limit: usize,
) -> Result<EventPage, Problem> {
    app.store()
        .events(region, after, limit)
        .await?
        .map_err(|CursorGone { oldest }| {
            let detail =
                format!("events after the cursor are no longer kept; go on after {oldest}");
            Problem::new(Code::CursorGone, detail).with("oldest", oldest.to_string())
        })
}

fn read_after(text: &str) -> Result<After, String> {
    if text == "latest" {
        return Ok(After::Latest);
    }
    text.parse()
        .map(After::Cursor)
        .map_err(|_| "must be a cursor, or latest".into())
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<After>, Problem> {
    let Some(value) = headers
        .get("last-event-id")
        .filter(|value| !value.is_empty())
    else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default();
    let cursor = text.parse().map_err(|_| {
        Problem::invalid_field(
            "Last-Event-ID",
            "bad_value",
            text.into(),
            "must be a cursor",
        )
    })?;
    Ok(Some(After::Cursor(cursor)))
}
