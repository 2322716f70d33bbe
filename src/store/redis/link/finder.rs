//! Finding the primary, and making sure that it is one.

use std::{fmt, sync::Arc, time::Duration};

use tokio::sync::watch;

use super::{
    channel::{Live, PROBE_EVERY},
    dial::{Dialer, Hello, Opened},
    endpoint::Endpoint,
    sentinel::Sentinels,
};

/// Oldest version whose scripts may do what ours do: `XTRIM … MINID`, and `HELLO` without arguments.
const OLDEST_VERSION: (u32, u32) = (6, 2);

/// Where the primary is, and how it is reached.
pub(super) struct Finder {
    dialer: Dialer,
    place: Place,
    /// Raised when somebody was told that the server is a replica.
    alarm: watch::Sender<u64>,
}

pub(super) enum Place {
    /// A single server.
    Server(Endpoint),
    /// A node of a cluster.
    Node(Endpoint),
    /// Wherever the sentinels say.
    Sentinel(Sentinels),
}

impl Finder {
    pub(super) fn new(dialer: Dialer, place: Place) -> Self {
        Self {
            dialer,
            place,
            alarm: watch::Sender::new(0),
        }
    }

    /// A connection to a server that says that it is a primary.
    ///
    /// # Errors
    /// Why not, without secrets.
    pub(super) async fn open(&self, name: &str) -> Result<Opened, Arc<str>> {
        let found;
        let endpoint = match &self.place {
            Place::Server(endpoint) | Place::Node(endpoint) => endpoint,
            Place::Sentinel(sentinels) => {
                found = sentinels.primary(Duration::ZERO).await?;
                &found
            }
        };
        let opened = self.dialer.open(endpoint, name).await?;
        match self.fault(&opened.hello) {
            None => Ok(opened),
            Some(fault) => Err(format!("{endpoint}: {fault}").into()),
        }
    }

    /// Looks whether a connection still is one to the primary. Silence is no answer: it is counted
    /// with the calls that have no reply.
    ///
    /// # Errors
    /// Why it is to be replaced.
    pub(super) async fn probe(&self, live: &Live, endpoint: &Endpoint) -> Result<(), Arc<str>> {
        if let Some(hello) = live.hello(self.dialer.options.deadline).await
            && let Some(fault) = self.fault(&hello)
        {
            return Err(format!("{endpoint}: {fault}").into());
        }
        if let Place::Sentinel(sentinels) = &self.place
            && let Ok(primary) = sentinels.primary(PROBE_EVERY).await
            && primary != *endpoint
        {
            return Err(format!("{endpoint}: the sentinels name {primary} now").into());
        }
        Ok(())
    }

    fn fault(&self, hello: &Hello) -> Option<String> {
        let clustered = hello.mode == "cluster";
        match &self.place {
            _ if hello.mode == "sentinel" => {
                return Some("is a sentinel: use redis+sentinel://".into());
            }
            Place::Node(_) if !clustered => return Some("is no node of a cluster".into()),
            Place::Server(_) | Place::Sentinel(_) if clustered => {
                return Some("is a node of a cluster: use redis+cluster://".into());
            }
            _ => {}
        }
        if version(&hello.version).is_none_or(|version| version < OLDEST_VERSION) {
            let (major, minor) = OLDEST_VERSION;
            let found = &hello.version;
            return Some(format!("version {found} is older than {major}.{minor}"));
        }
        (!hello.is_primary()).then(|| "is a replica".into())
    }

    /// For every channel to this server: look at once whether it still is a primary.
    pub(super) fn raise_alarm(&self) {
        self.alarm.send_modify(|count| *count += 1);
    }

    pub(super) fn alarm(&self) -> watch::Receiver<u64> {
        self.alarm.subscribe()
    }

    pub(super) const fn deadline(&self) -> Duration {
        self.dialer.options.deadline
    }

    /// Where a node of a cluster is; else nothing.
    pub(super) const fn node(&self) -> Option<&Endpoint> {
        match &self.place {
            Place::Node(endpoint) => Some(endpoint),
            Place::Server(_) | Place::Sentinel(_) => None,
        }
    }
}

impl fmt::Display for Finder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Server(endpoint) | Place::Node(endpoint) => endpoint.fmt(f),
            Place::Sentinel(sentinels) => write!(f, "primary of {}", sentinels.service()),
        }
    }
}

/// Major and minor.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(version("6.0.16") < Some(OLDEST_VERSION));
        assert!(version("6.2.0") >= Some(OLDEST_VERSION));
        assert!(version("10.1") > Some(OLDEST_VERSION));
        assert_eq!(version("unstable"), None);
    }
}
