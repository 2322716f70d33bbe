//! Opening one connection: TCP, TLS, login, and what the server says of itself.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use futures_util::future::select_ok;
use redis::{
    AsyncConnectionConfig, Cmd, Pipeline, RedisConnectionInfo, RedisError, Value,
    aio::MultiplexedConnection,
};
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, lookup_host},
    runtime::Handle,
    sync::Semaphore,
    task::{AbortHandle, JoinHandle},
    time::timeout,
};

use super::{
    address::{Credentials, TlsPaths},
    endpoint::Endpoint,
    error::{LinkError, text_of},
    lane::LinkOptions,
    tls::Tls,
};

/// Most addresses of one host that are tried, all at once.
const MAX_ADDRESSES: usize = 8;

/// Most names that are looked up at once: a resolver that hangs holds a thread for each.
const MAX_LOOKUPS: usize = 4;

/// Opens connections, all with the same credentials and limits.
#[derive(Clone)]
pub(super) struct Dialer {
    pub(super) credentials: Credentials,
    pub(super) database: u16,
    pub(super) tls: Option<Tls>,
    pub(super) options: LinkOptions,
    lookups: Arc<Semaphore>,
}

/// A connection that is logged in.
pub(super) struct Opened {
    pub(super) endpoint: Endpoint,
    pub(super) connection: MultiplexedConnection,
    /// Carries the bytes; dropped, it closes the connection.
    pub(super) driver: Task,
    pub(super) hello: Hello,
}

/// A task that ends when this is dropped.
pub(super) struct Task(JoinHandle<()>);

impl Task {
    pub(super) fn spawn_on(
        runtime: &Handle,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        Self(runtime.spawn(task))
    }

    /// Waits for its end, which may lie in the past.
    pub(super) async fn ended(&mut self) {
        if !self.0.is_finished() {
            let _ = (&mut self.0).await;
        }
    }

    pub(super) fn abort_handle(&self) -> AbortHandle {
        self.0.abort_handle()
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Hello {
    /// For example `7.0.15`.
    pub(super) version: String,
    /// `standalone`, `cluster` or `sentinel`.
    pub(super) mode: String,
    /// `master` or `replica`.
    pub(super) role: String,
}

impl Dialer {
    pub(super) fn new(
        credentials: Credentials,
        database: u16,
        tls: Option<&TlsPaths>,
        options: LinkOptions,
    ) -> Result<Self, LinkError> {
        Ok(Self {
            credentials,
            database,
            tls: tls.map(Tls::new).transpose()?,
            options,
            lookups: Arc::new(Semaphore::new(MAX_LOOKUPS)),
        })
    }

    /// Opens a connection and logs in; `name` is how it is listed by `CLIENT LIST`. Ends within
    /// [`LinkOptions::connect_time`].
    ///
    /// # Errors
    /// Why not, without secrets.
    pub(super) async fn open(&self, endpoint: &Endpoint, name: &str) -> Result<Opened, Arc<str>> {
        let limit = self.options.connect_time();
        let reason = match timeout(limit, self.try_open(endpoint, name)).await {
            Ok(Ok(opened)) => return Ok(opened),
            Ok(Err(reason)) => reason,
            Err(_) => format!("no answer within {} ms", limit.as_millis()),
        };
        Err(format!("{endpoint}: {}", self.credentials.redact(&reason)).into())
    }

    async fn try_open(&self, endpoint: &Endpoint, name: &str) -> Result<Opened, String> {
        let tcp = self.connect(endpoint).await.map_err(|e| e.to_string())?;
        set_options(&tcp, self.options.deadline).map_err(|e| e.to_string())?;
        match &self.tls {
            None => self.log_in(endpoint, tcp, name).await,
            Some(tls) => {
                let stream = tls.connect(&endpoint.host, tcp).await;
                let stream = stream.map_err(|error| format!("TLS: {error}"))?;
                self.log_in(endpoint, stream, name).await
            }
        }
    }

    async fn connect(&self, endpoint: &Endpoint) -> io::Result<TcpStream> {
        let attempts: Vec<_> = self
            .look_up(endpoint)
            .await?
            .into_iter()
            .map(|address| Box::pin(TcpStream::connect(address)))
            .collect();
        if attempts.is_empty() {
            return Err(io::Error::other("the host has no address"));
        }
        select_ok(attempts).await.map(|(stream, _)| stream)
    }

    /// Goes on when nobody waits any more, as its thread does, and keeps its permit till then.
    async fn look_up(&self, endpoint: &Endpoint) -> io::Result<Vec<SocketAddr>> {
        let permit = Arc::clone(&self.lookups).acquire_owned().await;
        let Endpoint { host, port } = endpoint.clone();
        let lookup = tokio::spawn(async move {
            let addresses = lookup_host((&*host, port)).await;
            drop(permit);
            addresses.map(|addresses| addresses.take(MAX_ADDRESSES).collect())
        });
        lookup.await?
    }

    async fn log_in<S>(&self, endpoint: &Endpoint, stream: S, name: &str) -> Result<Opened, String>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        // what redis-rs would send by itself is left out: its errors hide the server's words
        let info = RedisConnectionInfo::default().set_skip_set_lib_name();
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_pipeline_buffer_size(self.options.max_in_flight.max(1));
        let (mut connection, driver) =
            MultiplexedConnection::new_with_config(&info, stream, config)
                .await
                .map_err(|error| error.to_string())?;
        let driver = Task::spawn_on(&Handle::current(), driver);
        let (pipeline, hello_at) = self.greeting(name);
        let replies = connection
            .send_packed_commands(&pipeline, 0, pipeline.len())
            .await
            .map_err(|error| told(&error))?;
        // the name is a courtesy that may be refused
        for reply in &replies[..replies.len().min(hello_at + 1)] {
            if let Value::ServerError(error) = reply {
                return Err(text_of(error));
            }
        }
        let hello = replies.get(hello_at).map(Hello::read).unwrap_or_default();
        Ok(Opened {
            endpoint: endpoint.clone(),
            connection,
            driver,
            hello,
        })
    }

    /// All in one round trip, and the place of `HELLO` in it.
    fn greeting(&self, name: &str) -> (Pipeline, usize) {
        let mut pipeline = Pipeline::new();
        if let Some(password) = &self.credentials.password {
            pipeline.cmd("AUTH");
            if let Some(user) = &self.credentials.user {
                pipeline.arg(&**user);
            }
            pipeline.arg(&**password);
        }
        if self.database != 0 {
            pipeline.cmd("SELECT").arg(self.database);
        }
        let hello_at = pipeline.len();
        pipeline.add_command(Hello::command());
        pipeline.cmd("CLIENT").arg("SETNAME").arg(name);
        (pipeline, hello_at)
    }
}

impl Hello {
    /// `HELLO` needs no special permission, and is answered while a script runs or data is loaded.
    pub(super) fn command() -> Cmd {
        redis::cmd("HELLO")
    }

    /// Names and values one after another, or a map.
    pub(super) fn read(reply: &Value) -> Self {
        let mut hello = Self::default();
        let mut set = |name: &Value, value: &Value| {
            let field = match text(name) {
                "version" => &mut hello.version,
                "mode" => &mut hello.mode,
                "role" => &mut hello.role,
                _ => return,
            };
            text(value).clone_into(field);
        };
        match reply {
            Value::Array(items) => items
                .chunks_exact(2)
                .for_each(|pair| set(&pair[0], &pair[1])),
            Value::Map(pairs) => pairs.iter().for_each(|(name, value)| set(name, value)),
            _ => {}
        }
        hello
    }

    pub(super) fn is_primary(&self) -> bool {
        self.role == "master"
    }
}

/// A text reply; empty when it is none.
pub(super) fn text(value: &Value) -> &str {
    match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).unwrap_or(""),
        Value::SimpleString(text) => text,
        _ => "",
    }
}

/// A peer that is gone without a word is noticed by the kernel too: data that nobody acknowledges
/// ends the connection after four deadlines, silence after 15 s.
fn set_options(tcp: &TcpStream, deadline: Duration) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    let socket = SockRef::from(tcp);
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(6))
        .with_interval(Duration::from_secs(3))
        .with_retries(3);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    socket.set_tcp_user_timeout(Some(deadline * 4))?;
    Ok(())
}

fn told(error: &RedisError) -> String {
    match error.clone().try_into() {
        Ok(error) => text_of(&error),
        Err(_) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_hello_is_read_in_either_protocol() {
        let bulk = |text: &str| Value::BulkString(text.into());
        let fields = [
            ("server", bulk("redis")),
            ("version", bulk("7.0.15")),
            ("proto", Value::Int(2)),
            ("mode", bulk("cluster")),
            ("role", bulk("master")),
            ("modules", Value::Array(Vec::new())),
        ];
        let flat = fields
            .iter()
            .flat_map(|(name, value)| [bulk(name), value.clone()]);
        let map = fields
            .iter()
            .map(|(name, value)| (bulk(name), value.clone()));
        let hello = Hello::read(&Value::Array(flat.collect()));
        assert_eq!(hello, Hello::read(&Value::Map(map.collect())));
        assert_eq!((&*hello.version, &*hello.mode), ("7.0.15", "cluster"));
        assert!(hello.is_primary());
        assert!(!Hello::read(&Value::Nil).is_primary());
    }
}
