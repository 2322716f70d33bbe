//! Redis servers of a test, and ways to hurt them.

use std::{
    fmt::Debug,
    future::Future,
    net::TcpListener as StdListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use redis::Value;
use tempfile::TempDir;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    time::{Instant, sleep},
};

use crate::store::redis::link::{CallError, Lane, Link, LinkOptions, RedisAddress, Script};

pub(super) const DEADLINE: Duration = Duration::from_millis(300);

/// What a machine that does other things may add; the times that are printed are far below.
pub(super) const SLACK: Duration = Duration::from_millis(250);

/// A `redis-server` of its own, gone when it is dropped.
pub(super) struct Server {
    pub(super) port: u16,
    /// A sentinel's; else the settings are arguments.
    file: Option<PathBuf>,
    arguments: Vec<String>,
    dir: TempDir,
    child: Option<Child>,
}

impl Server {
    pub(super) fn start(arguments: &[&str]) -> Self {
        let mut server = Self {
            port: free_port(),
            file: None,
            arguments: arguments.iter().map(|&text| text.to_owned()).collect(),
            dir: TempDir::new().unwrap(),
            child: None,
        };
        server.restart();
        server
    }

    /// A sentinel with its file.
    pub(super) fn of_file(port: u16, file: &Path) -> Self {
        let mut server = Self {
            port,
            file: Some(file.to_owned()),
            arguments: Vec::new(),
            dir: TempDir::new().unwrap(),
            child: None,
        };
        server.restart();
        server
    }

    /// Starts the process again, on the same port with the same files.
    pub(super) fn restart(&mut self) {
        self.kill();
        let log = std::fs::File::create(self.dir.path().join("log")).unwrap();
        let mut command = Command::new("redis-server");
        match &self.file {
            Some(file) => command.arg(file).arg("--sentinel"),
            None => command
                .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"])
                .args(["--save", "", "--appendonly", "yes", "--appendfsync", "no"])
                .args(["--repl-diskless-sync-delay", "0"])
                .args(&self.arguments),
        };
        let child = command
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(log)
            .spawn()
            .expect("redis-server must be installed");
        self.child = Some(child);
    }

    /// Starts it again with more settings.
    pub(super) fn restart_with(&mut self, settings: &[[&str; 2]]) {
        let words = settings.iter().flatten().map(|&text| text.to_owned());
        self.arguments.extend(words);
        self.restart();
    }

    /// Waits until it answers.
    pub(super) async fn answers(&self) {
        let is_answer = |text: &str| text == "PONG" || text.starts_with("NOAUTH");
        until("the server answers", async || {
            is_answer(&self.cli(&["PING"]))
        })
        .await;
    }

    pub(super) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Stops it without a word, or lets it go on.
    pub(super) fn signal(&self, signal: &str) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        let status = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(status.success());
    }

    /// What `redis-cli` prints; nothing when it cannot connect.
    pub(super) fn cli(&self, arguments: &[&str]) -> String {
        cli(self.port, arguments)
    }

    pub(super) fn address(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(super) fn cli(port: u16, arguments: &[&str]) -> String {
    let output = Command::new("redis-cli")
        .args(["-p", &port.to_string()])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("redis-cli must be installed");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A port that is free now, together with the one 10,000 above it, where a node of a cluster
/// listens for the others.
pub(super) fn free_port() -> u16 {
    for _ in 0..100 {
        let listener = StdListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let low = if port > 55_000 { port - 10_000 } else { port };
        let free = |port| StdListener::bind(("127.0.0.1", port)).is_ok();
        if free(low + 10_000) && (low == port || free(low)) {
            return low;
        }
    }
    panic!("no free ports");
}

/// A sentinel that was not scheduled for a while does nothing for half a minute.
const LONGEST_WAIT: Duration = Duration::from_secs(90);

/// Waits for what takes a moment.
pub(super) async fn until(what: &str, is_so: impl AsyncFn() -> bool) -> Duration {
    let start = Instant::now();
    while !is_so().await {
        assert!(start.elapsed() < LONGEST_WAIT, "never: {what}");
        sleep(Duration::from_millis(5)).await;
    }
    start.elapsed()
}

/// What it takes, which is never more than a deadline.
pub(super) async fn timed<T: Debug>(call: impl Future<Output = T>) -> (T, Duration) {
    let start = Instant::now();
    let result = call.await;
    let time = start.elapsed();
    assert!(time < DEADLINE + SLACK, "{time:?} for {result:?}");
    (result, time)
}

pub(super) async fn connect(address: &str) -> Link {
    connect_with(address, LinkOptions::default()).await
}

/// For tests that are not about time.
pub(super) async fn connect_patiently(address: &str) -> Link {
    let options = LinkOptions {
        deadline: Duration::from_secs(5),
        ..LinkOptions::default()
    };
    connect_with(address, options).await
}

pub(super) async fn connect_with(address: &str, options: LinkOptions) -> Link {
    let address = RedisAddress::parse(address).unwrap();
    Link::connect(&address, options).await.unwrap()
}

/// Adds to a counter by a script.
pub(super) async fn add(link: &Link, key: &str) -> Result<i64, CallError> {
    let script = Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1])");
    match link.script(Lane::Work, &script, &[key], &[b"1"]).await {
        Ok(Value::Int(sum)) => Ok(sum),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error),
    }
}

pub(super) async fn get(link: &Link, key: &str) -> Result<Value, CallError> {
    let mut command = redis::cmd("GET");
    command.arg(key);
    link.command(Lane::Read, key, &command).await
}

/// A way to a server that can be made to swallow everything.
pub(super) struct Proxy {
    pub(super) port: u16,
    swallow: watch::Sender<u64>,
}

impl Proxy {
    pub(super) async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let (swallow, swallowed) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((mut from, _)) = listener.accept().await {
                let mut swallowed = swallowed.clone();
                swallowed.mark_unchanged();
                tokio::spawn(async move {
                    let Ok(mut to) = TcpStream::connect(("127.0.0.1", port)).await else {
                        return;
                    };
                    tokio::select! {
                        _ = copy_bidirectional(&mut from, &mut to) => {}
                        // both ends stay open, and nothing passes any more
                        Ok(()) = swallowed.changed() => std::future::pending().await,
                    }
                });
            }
        });
        Self { port: own, swallow }
    }

    /// What is connected now hears nothing any more; new connections work.
    pub(super) fn cut_silently(&self) {
        self.swallow.send_modify(|count| *count += 1);
    }
}

/// Accepts connections and never says a word.
pub(super) async fn silent_listener() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok(connection) = listener.accept().await {
            held.push(connection);
        }
    });
    port
}

/// Does not even complete a connection, as if no packet came through: its queue is full.
pub(super) async fn deaf_listener() -> (u16, Vec<tokio::task::JoinHandle<()>>) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any: std::net::SocketAddr = ([127, 0, 0, 1], 0).into();
    socket.bind(&any.into()).unwrap();
    socket.listen(0).unwrap();
    let port = StdListener::from(socket.try_clone().unwrap())
        .local_addr()
        .unwrap()
        .port();
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push(tokio::spawn(async move {
            let connection = TcpStream::connect(("127.0.0.1", port)).await;
            std::future::pending::<()>().await;
            drop(connection);
        }));
    }
    held.push(tokio::spawn(async move {
        std::future::pending::<()>().await;
        drop(socket);
    }));
    sleep(Duration::from_millis(50)).await;
    (port, held)
}

/// Calls in a loop until told to stop, each one within its deadline; gives the longest call and the
/// longest time without a success.
pub(super) struct Caller {
    stop: Arc<watch::Sender<bool>>,
    task: tokio::task::JoinHandle<Called>,
}

#[derive(Debug, Default)]
pub(super) struct Called {
    pub(super) successes: u32,
    pub(super) failures: u32,
    pub(super) longest_call: Duration,
    pub(super) longest_gap: Duration,
}

impl Caller {
    pub(super) fn begin(link: &Link, key: String) -> Self {
        let stop = Arc::new(watch::Sender::new(false));
        let link = link.clone();
        let stopped = stop.subscribe();
        let task = tokio::spawn(async move {
            let mut called = Called::default();
            let mut last_success = Instant::now();
            while !*stopped.borrow() {
                let (result, time) = timed(add(&link, &key)).await;
                called.longest_call = called.longest_call.max(time);
                match result {
                    Ok(_) => {
                        called.successes += 1;
                        called.longest_gap = called.longest_gap.max(last_success.elapsed());
                        last_success = Instant::now();
                    }
                    Err(CallError::Refused(reason)) => panic!("{reason}"),
                    Err(_) => called.failures += 1,
                }
                sleep(Duration::from_millis(5)).await;
            }
            called
        });
        Self { stop, task }
    }

    pub(super) async fn end(self) -> Called {
        self.stop.send_replace(true);
        self.task.await.unwrap()
    }
}
