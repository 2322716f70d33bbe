//! Sentinels, and which primary they name.

use std::{sync::Arc, time::Duration};

use redis::{Pipeline, Value};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

use super::{
    dial::{Dialer, text},
    endpoint::Endpoint,
    error::text_of,
    gather::gather,
};

/// How long answers are waited for when fewer than most sentinels give one.
const PATIENCE: Duration = Duration::from_millis(250);

/// Sentinels that watch one service.
pub(super) struct Sentinels {
    dialer: Dialer,
    endpoints: Vec<Endpoint>,
    service: Arc<str>,
    /// The newest answer. Locked while it is asked for, so that any number of channels ask once.
    last: Mutex<Option<(Instant, Endpoint)>>,
}

/// What one sentinel says.
struct Named {
    primary: Endpoint,
    epoch: u64,
}

impl Sentinels {
    /// `dialer` has the sentinels' own credentials.
    pub(super) fn new(dialer: Dialer, endpoints: Vec<Endpoint>, service: Arc<str>) -> Self {
        Self {
            dialer,
            endpoints,
            service,
            last: Mutex::new(None),
        }
    }

    /// The primary with the highest configuration epoch that most sentinels, or those that answer
    /// in time, know of. An answer may be as old as `max_age`.
    ///
    /// # Errors
    /// Why nobody names one.
    pub(super) async fn primary(&self, max_age: Duration) -> Result<Endpoint, Arc<str>> {
        let asked_at = Instant::now();
        let mut last = self.last.lock().await;
        if let Some((at, primary)) = &*last
            && *at + max_age >= asked_at
        {
            return Ok(primary.clone());
        }
        let begun_at = Instant::now();
        let asks: Vec<_> = self.endpoints.iter().map(|node| self.ask(node)).collect();
        let (named, failure) = gather(asks, begun_at + PATIENCE).await;
        match named.into_iter().max_by_key(|named| named.epoch) {
            Some(named) => {
                *last = Some((begun_at, named.primary.clone()));
                Ok(named.primary)
            }
            None => Err(failure.unwrap_or_else(|| "no sentinel answers".into())),
        }
    }

    pub(super) fn service(&self) -> &str {
        &self.service
    }

    async fn ask(&self, endpoint: &Endpoint) -> Result<Named, Arc<str>> {
        let mut opened = self.dialer.open(endpoint, "kheya-sentinel").await?;
        let mut pipeline = Pipeline::new();
        for verb in ["GET-MASTER-ADDR-BY-NAME", "MASTER"] {
            pipeline.cmd("SENTINEL").arg(verb).arg(&*self.service);
        }
        let call = opened.connection.send_packed_commands(&pipeline, 0, 2);
        match timeout(PATIENCE, call).await {
            Ok(Ok(replies)) => Named::read(&replies, endpoint),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("no answer".into()),
        }
        .map_err(|reason| format!("sentinel {endpoint}: {reason}").into())
    }
}

impl Named {
    /// The address is that of the promoted replica as soon as the failover has one; the epoch
    /// stands among the fields of the second reply.
    fn read(replies: &[Value], asked: &Endpoint) -> Result<Self, String> {
        if let Some(error) = replies.iter().find_map(|reply| match reply {
            Value::ServerError(error) => Some(error),
            _ => None,
        }) {
            return Err(text_of(error));
        }
        let [Value::Array(address), fields] = replies else {
            return Err("does not watch the service".into());
        };
        let [host, port] = &address[..] else {
            return Err("names no address".into());
        };
        let primary = Endpoint::told(&format!("{}:{}", text(host), text(port)), asked);
        let epoch = match fields {
            Value::Array(fields) => fields
                .chunks_exact(2)
                .find(|pair| text(&pair[0]) == "config-epoch")
                .and_then(|pair| text(&pair[1]).parse().ok()),
            _ => None,
        };
        Ok(Self {
            primary: primary.ok_or("names no address")?,
            epoch: epoch.unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentinels_answer_is_read() {
        let bulk = |text: &str| Value::BulkString(text.into());
        let address = Value::Array(vec![bulk("10.0.0.7"), bulk("6380")]);
        let fields = ["name", "main", "ip", "10.0.0.7", "config-epoch", "12"];
        let fields = Value::Array(fields.map(bulk).to_vec());
        let asked = Endpoint::new("s", 1);
        let named = Named::read(&[address, fields], &asked).unwrap();
        assert_eq!(named.primary, Endpoint::new("10.0.0.7", 6380));
        assert_eq!(named.epoch, 12);
        let unknown = Named::read(&[Value::Nil, Value::Nil], &asked);
        assert!(unknown.is_err_and(|reason| reason.contains("service")));
    }
}
