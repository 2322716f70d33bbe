//! One real `redis-server`.

use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use redis::{Connection, FromRedisValue, RedisResult};
use tempfile::TempDir;

use super::{clock::MovedClock, settings::RedisSettings};
use crate::{
    port::{Port, loopback},
    process::Process,
    waiting::{wait_for, wait_until},
};

/// Longest time that a server takes to answer after its start.
const STARTS_WITHIN: Duration = Duration::from_secs(20);

/// Longest time that a command of the kit itself takes; a paused server answers none.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// Longest time that a replica takes to follow.
const FOLLOWS_WITHIN: Duration = Duration::from_secs(20);

/// How often a start is tried again when its port turns out to be taken.
const STARTS: usize = 5;

/// The files that are not data.
const KEPT: [&str; 4] = ["redis.conf", "redis.log", "clock", "clock_shim.so"];

/// A server of its own: port, directory, process. It is killed when this is dropped.
#[derive(Debug)]
pub struct RedisServer {
    settings: RedisSettings,
    reserved: Port,
    /// Differs from the reserved one after its pair failed over.
    port: AtomicU16,
    clock: Option<MovedClock>,
    process: Mutex<Arc<Process>>,
    // dropped last
    directory: TempDir,
}

impl RedisServer {
    /// Starts a server that keeps nothing on disk.
    pub fn start() -> Self {
        RedisSettings::default().start()
    }

    pub(crate) fn start_with(settings: RedisSettings) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("kheya-redis-")
            .tempdir()
            .unwrap();
        let clock = settings
            .moved_clock
            .then(|| MovedClock::new(directory.path()));
        for _ in 0..STARTS {
            let reserved = Port::take();
            let file = settings.file(directory.path(), &reserved);
            fs::write(directory.path().join("redis.conf"), file).unwrap();
            let port = reserved.number();
            if let Ok(process) = spawn(directory.path(), port, clock.as_ref()) {
                return Self {
                    settings,
                    port: AtomicU16::new(port),
                    reserved,
                    clock,
                    process: Mutex::new(Arc::new(process)),
                    directory,
                };
            }
        }
        panic!("no redis-server could be started");
    }

    /// Where clients find it.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        loopback(self.port())
    }

    /// The port on which it listens.
    pub fn port(&self) -> u16 {
        self.port.load(Ordering::SeqCst)
    }

    /// The directory of its files.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Its log since the first start.
    pub fn log(&self) -> String {
        self.process().printed()
    }

    /// Whether its process exists and is not paused.
    pub fn is_serving(&self) -> bool {
        let process = self.process();
        process.is_running() && !process.is_paused()
    }

    /// Whether it was paused, and has not gone on since.
    pub fn is_paused(&self) -> bool {
        self.process().is_paused()
    }

    /// A blocking connection whose calls fail after two seconds.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub fn try_connect(&self) -> RedisResult<Connection> {
        connect(self.address())
    }

    /// Sends one command over a connection of its own.
    ///
    /// # Errors
    /// The server's refusal, or that it cannot be reached.
    pub fn try_call<T: FromRedisValue>(&self, command: &[&str]) -> RedisResult<T> {
        call(self.address(), command)
    }

    /// Sends one command that must succeed.
    pub fn call<T: FromRedisValue>(&self, command: &[&str]) -> T {
        self.try_call(command)
            .unwrap_or_else(|error| panic!("{}: {command:?}: {error}", self.address()))
    }

    /// Kills it (SIGKILL). What it had written to files is kept: the page cache survives a process.
    pub fn kill9(&self) {
        self.process().kill9();
    }

    /// Stops it where it stands (SIGSTOP): connections are accepted, and nothing is answered.
    pub fn pause(&self) {
        self.process().pause();
    }

    /// Lets it go on. It answers first what was sent meanwhile, also for clients that gave up.
    pub fn resume(&self) {
        self.process().resume();
    }

    /// Asks it to end in order (SIGTERM).
    pub fn terminate(&self) {
        self.process().terminate(ANSWERS_WITHIN * 5);
    }

    /// Starts it again with its data on its port, killing it before if it runs.
    pub fn restart(&self) {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        process.kill9();
        for _ in 0..STARTS {
            if let Ok(again) = spawn(self.directory(), self.port(), self.clock.as_ref()) {
                *process = Arc::new(again);
                return;
            }
        }
        panic!("redis-server did not come back on {}", self.address());
    }

    /// Starts it again as on a new disk: without data, and with its first configuration.
    pub fn restart_empty(&self) {
        self.kill9();
        for entry in fs::read_dir(self.directory()).unwrap() {
            let entry = entry.unwrap();
            if KEPT.iter().any(|kept| entry.file_name() == *kept) {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                fs::remove_dir_all(entry.path()).unwrap();
            } else {
                fs::remove_file(entry.path()).unwrap();
            }
        }
        let file = self.settings.file(self.directory(), &self.reserved);
        fs::write(self.directory().join("redis.conf"), file).unwrap();
        self.restart();
    }

    /// Cuts bytes off the end of the append-only file of a server that was killed, as a power cut
    /// does to what was not yet durable; gives how many were cut, which are fewer if the file is
    /// short.
    pub fn truncate_aof(&self, bytes: u64) -> u64 {
        assert!(
            !self.process().is_running(),
            "the log of a running server is not cut"
        );
        let file = fs::File::options()
            .write(true)
            .open(self.newest_aof())
            .unwrap();
        let length = file.metadata().unwrap().len();
        let cut = bytes.min(length);
        assert!(cut > 0, "there is nothing to cut");
        file.set_len(length - cut).unwrap();
        cut
    }

    /// A power cut: kills it, cuts the end off its append-only file, starts it again.
    pub fn lose_power(&self, bytes: u64) -> u64 {
        self.kill9();
        let cut = self.truncate_aof(bytes);
        self.restart();
        cut
    }

    fn newest_aof(&self) -> PathBuf {
        let number = |path: &PathBuf| {
            let name = path.file_name()?.to_str()?;
            let stem = name.strip_suffix(".incr.aof")?;
            stem.rsplit_once('.')?.1.parse::<u64>().ok()
        };
        let found = fs::read_dir(self.directory().join("appendonlydir"))
            .expect("a server with an append-only file")
            .map(|entry| entry.unwrap().path())
            .filter(|path| number(path).is_some());
        found.max_by_key(number).expect("an append-only file")
    }

    /// Makes it a replica, and waits until it has everything that the primary has.
    pub fn replica_of(&self, primary: &RedisServer) {
        let port = primary.port().to_string();
        self.call::<()>(&["REPLICAOF", "127.0.0.1", &port]);
        self.wait_caught_up(primary);
    }

    /// Waits until this replica has everything that the primary has, and is fed by it.
    pub fn wait_caught_up(&self, primary: &RedisServer) {
        let fed = format!("port={},state=online,", self.port());
        wait_until("a replica catches up", FOLLOWS_WITHIN, || {
            let replicas: String = primary
                .try_call(&["INFO", "replication"])
                .unwrap_or_default();
            let link = self.info("replication", "master_link_status");
            replicas.contains(&fed)
                && link.as_deref() == Some("up")
                && self.info("replication", "slave_repl_offset")
                    == primary.info("replication", "master_repl_offset")
        });
    }

    /// Makes this replica a primary, with a new replication id.
    pub fn promote(&self) {
        self.call::<()>(&["REPLICAOF", "NO", "ONE"]);
        wait_until("a replica is promoted", FOLLOWS_WITHIN, || {
            self.is_primary()
        });
    }

    /// Whether it says that it is a primary.
    pub fn is_primary(&self) -> bool {
        self.info("replication", "role").as_deref() == Some("master")
    }

    /// One field of `INFO`, if the server answers and has it.
    pub fn info(&self, section: &str, field: &str) -> Option<String> {
        let told: String = self.try_call(&["INFO", section]).ok()?;
        let value = |line: &str| Some(line.strip_prefix(field)?.strip_prefix(':')?.to_owned());
        told.lines().find_map(value)
    }

    /// Moves its wall clock forward, at once.
    ///
    /// # Panics
    /// If it was not started with [`RedisSettings::moved_clock`].
    pub fn advance(&self, by: Duration) {
        self.clock().advance(by);
    }

    /// Sets how many microseconds its wall clock is ahead of the machine's; negative is behind.
    ///
    /// # Panics
    /// If it was not started with [`RedisSettings::moved_clock`].
    pub fn set_offset_us(&self, offset_us: i64) {
        self.clock().set_offset_us(offset_us);
    }

    /// Lets its wall clock stand still where it is; [`RedisServer::advance`] moves it on from there.
    ///
    /// # Panics
    /// If it was not started with [`RedisSettings::moved_clock`].
    pub fn stop_clock(&self) {
        self.clock().stand_at_us(self.time_us());
    }

    /// How many microseconds its wall clock is ahead of the machine's.
    ///
    /// # Panics
    /// If it was not started with [`RedisSettings::moved_clock`].
    pub fn offset_us(&self) -> i64 {
        self.clock().offset_us()
    }

    fn clock(&self) -> &MovedClock {
        self.clock
            .as_ref()
            .expect("a server started with a moved clock")
    }

    /// Its wall clock, as clients read it.
    pub fn time_us(&self) -> i64 {
        let (seconds, micros): (i64, i64) = self.call(&["TIME"]);
        seconds * 1_000_000 + micros
    }

    /// Moves it to a port that is free now.
    pub(crate) fn move_to(&self, port: u16) {
        self.call::<()>(&["CONFIG", "SET", "port", &port.to_string()]);
        self.set_port(port);
    }

    /// Lets it come back on another port at its next start.
    pub(crate) fn set_port(&self, port: u16) {
        self.port.store(port, Ordering::SeqCst);
    }

    fn process(&self) -> Arc<Process> {
        // a thread whose test failed holds nothing back from the others
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        process.clone()
    }
}

/// Starts a process on a port and waits until it answers.
fn spawn(directory: &Path, port: u16, clock: Option<&MovedClock>) -> io::Result<Process> {
    let log = directory.join("redis.log");
    let arguments = ["redis.conf", "--port", &port.to_string()];
    let program = Path::new("redis-server");
    let process = Process::start(program, arguments, directory, &log, |command| {
        if let Some(clock) = clock {
            clock.prepare(command);
        }
    });
    answering(&process, port).then_some(()).ok_or_else(|| {
        let taken = process.printed().contains("Address already in use");
        assert!(taken, "redis-server ended: {}", process.printed());
        io::ErrorKind::AddrInUse
    })?;
    Ok(process)
}

/// Waits until the process answers on its port; false if it ended instead.
pub(crate) fn answering(process: &Process, port: u16) -> bool {
    let (answers, _) = wait_for("a server answers", STARTS_WITHIN, || {
        let ping = || call::<String>(loopback(port), &["PING"]);
        match process.ended() {
            Some(_) => Some(false),
            None => ping().is_ok().then_some(true),
        }
    });
    answers
}

fn connect(address: SocketAddr) -> RedisResult<Connection> {
    let client = redis::Client::open(format!("redis://{address}"))?;
    let connection = client.get_connection_with_timeout(ANSWERS_WITHIN)?;
    connection.set_read_timeout(Some(ANSWERS_WITHIN))?;
    connection.set_write_timeout(Some(ANSWERS_WITHIN))?;
    Ok(connection)
}

/// Sends one command to whoever listens there.
pub(crate) fn call<T: FromRedisValue>(address: SocketAddr, command: &[&str]) -> RedisResult<T> {
    let mut sent = redis::Cmd::new();
    for argument in command {
        sent.arg(*argument);
    }
    sent.query(&mut connect(address)?)
}
