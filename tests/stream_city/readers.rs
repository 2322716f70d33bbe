//! Two readers of the outbox that hang up again and again: one by server-sent events, one by pages.

use std::time::Duration;

use serde_json::Value;
use tokio::{sync::mpsc, time::Instant};

use super::server::Api;

/// Reads the stream, hanging up every `patience`, and passes each event on.
pub(crate) async fn read_stream(
    api: Api,
    patience: Duration,
    events: mpsc::UnboundedSender<Value>,
) {
    let mut last: Option<String> = None;
    loop {
        let mut answer = api.stream(last.as_deref()).await;
        let hang_up = Instant::now() + patience;
        let mut buffer = Vec::new();
        while let Ok(Ok(Some(chunk))) = tokio::time::timeout_at(hang_up, answer.chunk()).await {
            buffer.extend_from_slice(&chunk);
            while let Some(end) = buffer.windows(2).position(|pair| pair == b"\n\n") {
                let message = String::from_utf8(buffer.drain(..end + 2).collect()).unwrap();
                let field = |name: &str| message.lines().find_map(|line| line.strip_prefix(name));
                let (Some(id), Some(data)) = (
                    field("id: ").or(field("id:")),
                    field("data: ").or(field("data:")),
                ) else {
                    continue;
                };
                let event: Value = serde_json::from_str(data.trim()).unwrap();
                assert_eq!(
                    event["cursor"],
                    id.trim(),
                    "the stream's id is the event's cursor"
                );
                last = Some(id.trim().to_owned());
                if events.send(event).is_err() {
                    return;
                }
            }
        }
    }
}

/// Reads pages by long poll; every third answer is thrown away as if the connection had broken, and
/// asked for again.
pub(crate) async fn read_pages(api: Api, events: mpsc::UnboundedSender<Value>) {
    let mut after = String::new();
    let mut polls = 0;
    loop {
        let from = if after.is_empty() {
            String::new()
        } else {
            format!("&after={after}")
        };
        let (status, page) = api
            .get(&format!("/events?wait_ms=500&limit=137{from}"))
            .await;
        assert_eq!(status, 200, "{page}");
        polls += 1;
        if polls % 3 == 0 {
            continue;
        }
        for event in page["events"].as_array().unwrap() {
            if events.send(event.clone()).is_err() {
                return;
            }
        }
        page["next"]
            .as_str()
            .expect("next is always usable")
            .clone_into(&mut after);
    }
}
