//! The listeners of a node, from their binding to the last drained connection.

use std::{future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep, timeout},
};

use super::{
    connection::Serving,
    lifecycle::{Lifecycle, Phase},
    router::{admin_router, router},
    state::AppState,
    tls::{TlsError, acceptor},
};
use crate::telemetry;

/// How long connections may take to end.
const DRAIN: Duration = Duration::from_secs(10);
/// How long the windows may take to finish: the longest window, its budget and its grace.
const FINISH: Duration = Duration::from_secs(70);
/// How often the token file is looked at.
const TOKENS_EVERY: Duration = Duration::from_secs(1);
/// How often metrics are folded.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);
/// Connections of the admin listener.
const ADMIN_CONNECTIONS: usize = 64;

/// The node cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Without tokens only this machine may reach the node.
    #[error(
        "{0} can be reached from other machines: give a token file (--tokens), or listen on 127.0.0.1"
    )]
    Open(SocketAddr),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// The certificate cannot be used.
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
}

/// A node that listens and does not serve yet.
pub struct Server {
    app: AppState,
    api: Listener,
    admin: Option<Listener>,
}

struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    serving: Serving,
    permits: Arc<Semaphore>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("listen", &self.local_addr())
            .field("admin_listen", &self.admin_addr())
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Binds the addresses of the configuration; connections wait until [`Server::run`].
    ///
    /// # Errors
    /// [`ServeError`].
    pub async fn bind(app: AppState) -> Result<Self, ServeError> {
        let config = app.config();
        if app.tokens().is_none() && !config.listen.ip().is_loopback() {
            return Err(ServeError::Open(config.listen));
        }
        let tls = config.tls.as_ref().map(acceptor).transpose()?;
        let serving = |router: Router, tls| Serving {
            router,
            tls,
            lifecycle: app.lifecycle().clone(),
        };
        let api = serving(router(app.clone()), tls);
        let api = Listener::bind(config.listen, api, config.max_connections).await?;
        let admin = match config.admin_listen {
            Some(address) => {
                let admin = serving(admin_router(app.clone()), None);
                Some(Listener::bind(address, admin, ADMIN_CONNECTIONS).await?)
            }
            None => None,
        };
        Ok(Self { app, api, admin })
    }

    /// The address of the API, with the port that was given to it.
    pub fn local_addr(&self) -> SocketAddr {
        self.api.address
    }

    /// The address of the admin listener.
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(|admin| admin.address)
    }

    /// Serves until `shutdown`, then ends in order: not ready → no new work (503
    /// `shutting_down`; claims, pings and reads go on) → `finish`, in which windows end and
    /// leaderships are given up → connections drain, 10 s at most → done. Changes that were begun
    /// have ended by then.
    pub async fn run(
        self,
        shutdown: impl Future<Output = ()> + Send,
        finish: impl Future<Output = ()> + Send,
    ) {
        let Self { app, api, admin } = self;
        let lifecycle = app.lifecycle().clone();
        tracing::info!(listen = %api.address, node = %app.config().node_id, "serving");
        let mut chores = JoinSet::new();
        chores.spawn(fold_metrics(app.clone()));
        chores.spawn(follow_tokens(app.clone()));
        let mut listeners = JoinSet::new();
        listeners.spawn(api.serve(lifecycle.clone()));
        if let Some(admin) = admin {
            listeners.spawn(admin.serve(lifecycle.clone()));
        }
        lifecycle.advance(Phase::Ready);
        shutdown.await;
        tracing::info!("shutting down: not ready, no new work");
        lifecycle.advance(Phase::Unready);
        lifecycle.advance(Phase::IntakeStopped);
        if timeout(FINISH, finish).await.is_err() {
            tracing::error!("windows did not finish in time");
        }
        tracing::info!("draining connections");
        lifecycle.advance(Phase::Draining);
        let drained = async {
            while listeners.join_next().await.is_some() {}
            app.changes_end().await;
        };
        if timeout(DRAIN + Duration::from_secs(1), drained)
            .await
            .is_err()
        {
            tracing::warn!("some changes did not end in time");
        }
        tracing::info!("stopped");
    }
}

impl Listener {
    async fn bind(
        address: SocketAddr,
        serving: Serving,
        connections: usize,
    ) -> Result<Self, ServeError> {
        let failed = |error| ServeError::Listen { address, error };
        let socket = TcpListener::bind(address).await.map_err(failed)?;
        Ok(Self {
            address: socket.local_addr().map_err(failed)?,
            socket,
            serving,
            permits: Arc::new(Semaphore::new(connections)),
        })
    }

    /// Accepts while the node lives, then waits for the connections to end.
    async fn serve(self, lifecycle: Lifecycle) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = lifecycle.draining() => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                (tcp, permit) = self.accept() => {
                    let serving = self.serving.clone();
                    connections.spawn(async move {
                        serving.connection(tcp).await;
                        drop(permit);
                    });
                }
            }
            telemetry::http_connections(connections.len());
        }
        let Self { socket, .. } = self;
        drop(socket);
        let drained = async { while connections.join_next().await.is_some() {} };
        if timeout(DRAIN, drained).await.is_err() {
            tracing::warn!(left = connections.len(), "connections are cut");
            connections.abort_all();
        }
    }

    /// The next connection, once there is room for it; others wait in the kernel's queue.
    async fn accept(&self) -> (TcpStream, Option<OwnedSemaphorePermit>) {
        // never closed
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok();
        loop {
            match self.socket.accept().await {
                Ok((tcp, _)) => return (tcp, permit),
                Err(error) => {
                    // out of file descriptors, or the client is gone already
                    tracing::warn!(%error, "accept failed");
                    sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
}

async fn fold_metrics(app: AppState) {
    let mut ticks = interval(UPKEEP_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        app.telemetry().upkeep();
    }
}

async fn follow_tokens(app: AppState) {
    let Some(tokens) = app.tokens().cloned() else {
        return;
    };
    let mut ticks = interval(TOKENS_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last_error = None;
    loop {
        ticks.tick().await;
        let file = Arc::clone(&tokens);
        let Ok(reloaded) = tokio::task::spawn_blocking(move || file.reload()).await else {
            continue;
        };
        match reloaded {
            Ok(changed) => {
                if changed {
                    tracing::info!("tokens changed");
                }
                last_error = None;
            }
            // told once, not every second
            Err(error) => {
                if last_error.as_ref() != Some(&error) {
                    tracing::error!(%error, "the token file is broken; the last good one stays");
                    last_error = Some(error);
                }
            }
        }
    }
}
