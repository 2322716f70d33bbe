//! The link: calls, and the way each one takes.

use std::{sync::Arc, time::Duration};

use redis::{Cmd, Pipeline, Value};
use tokio::{runtime::Handle, time::Instant};

use super::{
    address::{Credentials, RedisAddress, Topology},
    cluster::Cluster,
    counters::{Counters, LinkCounters},
    dial::Dialer,
    endpoint::Endpoint,
    error::{CallError, LinkError, Verdict, judge, text_of},
    finder::{Finder, Place},
    lane::{Lane, LinkOptions},
    request::{Manner, Request, Script},
    sentinel::Sentinels,
    server::{Ready, Server},
    slot::slot_of,
};

/// Most times that one call is sent: once, once after its script was loaded, and after redirections.
const MAX_HOPS: usize = 6;

/// The way to a Redis. Cheap to clone; the last clone closes the connections.
#[derive(Clone)]
pub(crate) struct Link {
    inner: Arc<Inner>,
    deadline: Duration,
}

struct Inner {
    way: Way,
    counters: Arc<Counters>,
}

enum Way {
    /// One primary has every slot.
    One(Arc<Server>),
    /// Each slot has its primary.
    Cluster(Cluster),
}

impl Link {
    /// Connects. The connections live on the present tokio runtime, whoever calls later, and each
    /// is opened when its lane is first used.
    ///
    /// # Errors
    /// [`LinkError`], within a second or two: a primary that cannot be reached or used right now.
    pub(crate) async fn connect(
        address: &RedisAddress,
        options: LinkOptions,
    ) -> Result<Self, LinkError> {
        let counters = Arc::new(Counters::default());
        let runtime = Handle::current();
        let dialer = |credentials: &Credentials, database| {
            let tls = address.tls.as_ref();
            Dialer::new(credentials.clone(), database, tls, options)
        };
        let servers = dialer(&address.credentials, address.database)?;
        let one = |place| {
            let finder = Finder::new(servers.clone(), place);
            Server::new(finder, options, Arc::clone(&counters), runtime.clone())
        };
        let unreachable = |reason| LinkError::Unreachable {
            address: address.to_string().into(),
            reason,
        };
        let way = match &address.topology {
            Topology::Server(endpoint) => Way::One(one(Place::Server(endpoint.clone()))),
            Topology::Sentinel {
                sentinels,
                service,
                credentials,
            } => {
                let dialer = dialer(credentials, 0)?;
                let sentinels = Sentinels::new(dialer, sentinels.clone(), Arc::clone(service));
                Way::One(one(Place::Sentinel(sentinels)))
            }
            Topology::Cluster(seeds) => {
                let cluster = Cluster::connect(seeds, servers, &counters, &runtime).await;
                Way::Cluster(cluster.map_err(unreachable)?)
            }
        };
        if let Way::One(server) = &way {
            server
                .finder()
                .open("kheya-start")
                .await
                .map_err(unreachable)?;
        }
        Ok(Self {
            inner: Arc::new(Inner { way, counters }),
            deadline: options.deadline,
        })
    }

    /// The same connections with another deadline.
    #[cfg(test)]
    pub(crate) fn with_deadline(&self, deadline: Duration) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            deadline,
        }
    }

    /// Runs a script on the primary of its keys, which lie in one slot. A server that does not have
    /// the script gets it, and is asked again: the first time it executed nothing.
    ///
    /// # Errors
    /// [`CallError`].
    pub(crate) async fn script(
        &self,
        lane: Lane,
        script: &Script,
        keys: &[&str],
        args: &[&[u8]],
    ) -> Result<Value, CallError> {
        let Some(slot) = one_slot(keys) else {
            return Err(CallError::Refused(
                "the keys of a script must lie in one slot".into(),
            ));
        };
        let request = Request::Script { script, keys, args };
        self.call(lane, slot, request).await.map(only)
    }

    /// Runs reading commands whose keys all lie in the slot of `slot_key`, at one instant if the
    /// pipeline is atomic. The values stand in the order of the commands.
    ///
    /// # Errors
    /// [`CallError`], also when one of the commands failed.
    pub(crate) async fn read(
        &self,
        lane: Lane,
        slot_key: &str,
        pipeline: &Pipeline,
    ) -> Result<Vec<Value>, CallError> {
        if pipeline.is_empty() {
            return Ok(Vec::new());
        }
        let request = Request::Reads(pipeline);
        self.call(lane, slot_of(slot_key.as_bytes()), request).await
    }

    /// Runs one command on the primary of `slot_key`.
    ///
    /// # Errors
    /// [`CallError`].
    pub(crate) async fn command(
        &self,
        lane: Lane,
        slot_key: &str,
        command: &Cmd,
    ) -> Result<Value, CallError> {
        let request = Request::Command(command);
        let slot = slot_of(slot_key.as_bytes());
        self.call(lane, slot, request).await.map(only)
    }

    async fn call(
        &self,
        lane: Lane,
        slot: u16,
        request: Request<'_>,
    ) -> Result<Vec<Value>, CallError> {
        let deadline = Instant::now() + self.deadline;
        let mut manner = Manner::default();
        let mut redirected: Option<Arc<Server>> = None;
        for _ in 0..MAX_HOPS {
            let ready = match redirected.take() {
                Some(server) => {
                    let ready = server.ready(lane, slot, deadline).await;
                    ready.map(|ready| (server, ready))
                }
                None => self.ready(lane, slot, deadline).await,
            };
            let (server, ready) = ready.inspect_err(|_| self.doubt())?;
            let live = ready.live.clone();
            let sent = ready.send(&request.assemble(manner), deadline).await;
            let replies = sent.inspect_err(|_| self.doubt())?;
            let error = match request.read(manner, replies) {
                Ok(values) => return Ok(values),
                Err(error) => error,
            };
            let not_executed = || Err(CallError::NotExecuted(text_of(&error).into()));
            match (judge(&error), &self.inner.way) {
                (Verdict::Redirect { to, ask }, Way::Cluster(cluster)) => {
                    let asked = server.finder().node();
                    let Some(to) = asked.and_then(|asked| Endpoint::told(&to, asked)) else {
                        return not_executed();
                    };
                    self.inner.counters.redirects.add();
                    let to = cluster.server_at(&to);
                    if !ask {
                        cluster.moved(slot, &to);
                    }
                    redirected = Some(to);
                    manner.ask = ask;
                }
                (Verdict::NoScript, _) if !manner.load => {
                    self.inner.counters.script_loads.add();
                    manner.load = true;
                    redirected = Some(server);
                }
                (Verdict::Demoted, _) => {
                    live.replace();
                    server.finder().raise_alarm();
                    self.doubt();
                    return not_executed();
                }
                (Verdict::LoggedOut, _) => {
                    live.replace();
                    return not_executed();
                }
                (Verdict::MapIsOld, _) => {
                    self.doubt();
                    return not_executed();
                }
                (Verdict::NotExecuted | Verdict::NoScript | Verdict::Redirect { .. }, _) => {
                    return not_executed();
                }
                (Verdict::Refused, _) => return Err(CallError::Refused(text_of(&error).into())),
            }
        }
        Err(CallError::NotExecuted("redirected too often".into()))
    }

    async fn ready(
        &self,
        lane: Lane,
        slot: u16,
        deadline: Instant,
    ) -> Result<(Arc<Server>, Ready), CallError> {
        match &self.inner.way {
            Way::One(server) => {
                let ready = server.ready(lane, slot, deadline).await?;
                Ok((Arc::clone(server), ready))
            }
            Way::Cluster(cluster) => cluster.ready(lane, slot, deadline).await,
        }
    }

    /// Something is wrong with a server: perhaps the map is old.
    fn doubt(&self) {
        if let Way::Cluster(cluster) = &self.inner.way {
            cluster.doubt();
        }
    }

    /// Whether regions may lie on different servers.
    pub(crate) fn is_cluster(&self) -> bool {
        matches!(self.inner.way, Way::Cluster(_))
    }

    /// What was counted since the link was made.
    pub(crate) fn counters(&self) -> LinkCounters {
        self.inner.counters.read()
    }

    /// Calls in flight in a lane, of all servers.
    pub(crate) fn in_flight(&self, lane: Lane) -> usize {
        let servers = self.servers();
        servers.iter().map(|server| server.in_flight(lane)).sum()
    }

    /// Every primary that is known now.
    pub(super) fn servers(&self) -> Vec<Arc<Server>> {
        match &self.inner.way {
            Way::One(server) => vec![Arc::clone(server)],
            Way::Cluster(cluster) => cluster.servers(),
        }
    }

    pub(super) const fn deadline(&self) -> Duration {
        self.deadline
    }
}

fn one_slot(keys: &[&str]) -> Option<u16> {
    let mut slots = keys.iter().map(|key| slot_of(key.as_bytes()));
    let first = slots.next()?;
    slots.all(|slot| slot == first).then_some(first)
}

/// The reply to a request that has one.
fn only(mut values: Vec<Value>) -> Value {
    values.pop().unwrap_or(Value::Nil)
}
