//! The way between clients and a server, with faults under the test's control.
//!
//! Promises: every byte arrives in order, once, unless a fault was injected; faults are drawn from a
//! seed by connection and command, so the same commands on the same connections meet the same
//! faults; what was really injected is counted. It runs on a thread of its own: a test that blocks
//! does not stop the traffic.
//!
//! What breaks it: clients of a cluster or of Sentinel learn other addresses than the proxy's, and go
//! past it; on connections that subscribe (one command, many answers) only delays and black holes
//! mean anything.

mod connection;
mod control;
mod faults;
mod resp;

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    thread::JoinHandle,
};

pub use control::{Delay, Towards};
pub use faults::{Fault, Injected, Often};
pub use resp::Command;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinSet,
};

use connection::{Connection, Framing};
use control::Control;
use faults::Faults;

/// A proxy in front of one server at a time. Its connections end when this is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the test and the connections both see.
#[derive(Debug)]
struct Shared {
    framing: Framing,
    control: Control,
    faults: Faults,
}

impl Proxy {
    /// A proxy in front of a Redis server: it knows where commands and answers begin and end.
    pub fn to_redis(server: SocketAddr, seed: u64) -> Self {
        Self::start(Framing::Resp, server, seed)
    }

    /// A proxy in front of any server whose clients ask and wait, such as HTTP/1.1: a request is what
    /// arrives at once, and cannot be duplicated.
    pub fn to_any(server: SocketAddr, seed: u64) -> Self {
        Self::start(Framing::Chunks, server, seed)
    }

    fn start(framing: Framing, server: SocketAddr, seed: u64) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            framing,
            control: Control::new(server),
            faults: Faults::new(seed),
        });
        let (stop, stopped) = oneshot::channel();
        let serving = shared.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(async {
                tokio::select! {
                    () = serve(listener, serving) => {}
                    _ = stopped => {}
                }
            });
        });
        Self {
            address,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address for clients of a Redis server.
    pub fn redis_url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// The address for clients of an HTTP server.
    pub fn http_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Delays everything that goes this way from now on; order is kept, and what is on its way at
    /// once is late once.
    pub fn delay(&self, towards: Towards, delay: Delay) {
        self.shared
            .control
            .change(|state| state.way(towards).delay = delay);
    }

    /// From now on nothing goes this way: connections stand open and silent, also new ones. What is
    /// sent meanwhile arrives after [`Proxy::let_through`], as after a partition.
    pub fn hold(&self, towards: Towards) {
        self.shared
            .control
            .change(|state| state.way(towards).held = true);
    }

    /// A half-open network: both ways are held.
    pub fn black_hole(&self) {
        self.hold(Towards::Server);
        self.hold(Towards::Client);
    }

    /// Ends [`Proxy::hold`] and [`Proxy::black_hole`].
    pub fn let_through(&self) {
        self.shared.control.change(|state| {
            state.way(Towards::Server).held = false;
            state.way(Towards::Client).held = false;
        });
    }

    /// Resets new connections, or accepts them again; open ones go on.
    pub fn refuse(&self, refuse: bool) {
        self.shared.control.change(|state| state.refusing = refuse);
    }

    /// Breaks every open connection, with whatever is on its way; they are gone when this returns.
    pub fn cut(&self) {
        self.shared.control.change_and_cut(|_| {});
    }

    /// Puts another server behind the proxy and breaks the connections to the old one.
    pub fn switch_upstream(&self, server: SocketAddr) {
        self.shared
            .control
            .change_and_cut(|state| state.upstream = server);
    }

    /// Puts another server behind the proxy for new connections; open ones stay with the old one.
    pub fn switch_new(&self, server: SocketAddr) {
        self.shared.control.change(|state| state.upstream = server);
    }

    /// Injects a fault into commands, so often, but never into those of a connection's setup.
    pub fn inject(&self, fault: Fault, often: Often) {
        self.inject_where(fault, often, |command| !command.is_setup());
    }

    /// Injects a fault into commands that match.
    ///
    /// # Panics
    /// If it is a duplicate and the proxy does not know where requests end.
    pub fn inject_where(
        &self,
        fault: Fault,
        often: Often,
        matches: impl Fn(&Command) -> bool + Send + Sync + 'static,
    ) {
        let needs_frames = matches!(fault, Fault::Duplicate | Fault::DuplicateLate(_));
        assert!(
            self.shared.framing == Framing::Resp || !needs_frames,
            "only commands of Redis are duplicated"
        );
        self.shared.faults.add(fault, often, Box::new(matches));
    }

    /// Ends every fault, and lets everything through at once; what was injected stays counted.
    pub fn heal(&self) {
        self.shared.faults.clear();
        self.shared.control.change(|state| {
            state.refusing = false;
            state.ways = [control::Way::default(); 2];
        });
    }

    /// What was really injected until now.
    pub fn injected(&self) -> Injected {
        self.shared.faults.injected()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let listener = TcpListener::from_std(listener).unwrap();
    let mut connections = JoinSet::new();
    for number in 0.. {
        let Ok((client, _)) = listener.accept().await else {
            continue;
        };
        if shared.control.now().refusing {
            shared.faults.count(|injected| injected.refused += 1);
            reset(&client);
            continue;
        }
        while connections.try_join_next().is_some() {}
        connections.spawn(Connection::new(number, shared.clone()).carry(client));
    }
}

/// Makes the end of a connection a reset.
fn reset(client: &TcpStream) {
    let _ = client.set_zero_linger();
}
