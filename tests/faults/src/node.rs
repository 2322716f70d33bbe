//! A real `kheya serve` process.

use std::{
    net::SocketAddr,
    path::PathBuf,
    process::ExitStatus,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tempfile::TempDir;

use crate::{port::Port, process::Process, waiting::wait_for};

/// Longest time that a node takes to listen after its start, and to end when it is asked to: it may
/// finish windows for 45 s.
const STARTS_WITHIN: Duration = Duration::from_secs(30);
const ENDS_WITHIN: Duration = Duration::from_mins(1);

/// How often a start is tried on another port when one turns out to be taken.
const STARTS: usize = 5;

/// With what a node is started.
#[derive(Debug, Clone)]
pub struct NodeSettings {
    binary: PathBuf,
    store: String,
    node_id: Option<String>,
    environment: Vec<(String, String)>,
    arguments: Vec<String>,
}

impl NodeSettings {
    /// A node of the binary, which a test names as `env!("CARGO_BIN_EXE_kheya")`, on the embedded
    /// store.
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        Self {
            binary: binary.into(),
            store: "memory".into(),
            node_id: None,
            environment: Vec::new(),
            arguments: Vec::new(),
        }
    }

    /// Puts its regions on a store.
    #[must_use]
    pub fn store(mut self, url: impl Into<String>) -> Self {
        self.store = url.into();
        self
    }

    /// Names it.
    #[must_use]
    pub fn node_id(mut self, id: impl Into<String>) -> Self {
        self.node_id = Some(id.into());
        self
    }

    /// Sets a variable, such as `KHEYA_LEADER_LEASE_MS`. Settings of the test's own environment do
    /// not reach the node.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Adds an argument of `kheya serve`.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Starts a node and waits until it listens.
    pub fn start(self) -> Node {
        let directory = tempfile::Builder::new()
            .prefix("kheya-node-")
            .tempdir()
            .unwrap();
        for _ in 0..STARTS {
            let port = Port::take();
            if let Some(process) = self.spawn(&directory, &port) {
                return Node {
                    settings: self,
                    port,
                    process: Mutex::new(Arc::new(process)),
                    directory,
                };
            }
        }
        panic!("no node could be started");
    }

    /// Starts a process and waits until it listens; none if its port was taken.
    fn spawn(&self, directory: &TempDir, port: &Port) -> Option<Process> {
        let output = directory.path().join("stderr");
        let listen = port.address().to_string();
        let mut arguments = vec!["serve", "--listen", &listen, "--store", &self.store];
        if let Some(id) = &self.node_id {
            arguments.extend(["--node-id", id]);
        }
        arguments.extend(self.arguments.iter().map(String::as_str));
        let before = std::fs::metadata(&output).map_or(0, |file| file.len()) as usize;
        let process = Process::start(
            &self.binary,
            arguments,
            directory.path(),
            &output,
            |command| {
                for (name, _) in std::env::vars_os() {
                    if name.as_encoded_bytes().starts_with(b"KHEYA_") {
                        command.env_remove(name);
                    }
                }
                command.envs(self.environment.iter().map(|(name, value)| (name, value)));
            },
        );
        let told = || process.printed().split_off(before);
        let (listens, _) = wait_for("a node listens", STARTS_WITHIN, || {
            if told().contains("kheya: listening on ") {
                return Some(true);
            }
            process.ended().map(|_| false)
        });
        if listens {
            return Some(process);
        }
        assert!(told().contains("in use"), "a node ended: {}", told());
        None
    }
}

/// A node: process, port, directory. It is killed when this is dropped.
#[derive(Debug)]
pub struct Node {
    settings: NodeSettings,
    port: Port,
    process: Mutex<Arc<Process>>,
    // dropped last
    directory: TempDir,
}

impl Node {
    /// Where its API is, over plain HTTP.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Where it listens; the same after a restart.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// The id of its process.
    pub fn pid(&self) -> u32 {
        self.process().pid()
    }

    /// Everything that it has said on standard error since its first start.
    pub fn stderr(&self) -> String {
        self.process().printed()
    }

    /// How it ended, if it has.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.process().ended()
    }

    /// Waits until it ends by itself.
    pub fn wait_end(&self, patience: Duration) -> ExitStatus {
        self.process().wait_end(patience)
    }

    /// Kills it (SIGKILL).
    pub fn kill9(&self) {
        self.process().kill9();
    }

    /// Stops it where it stands (SIGSTOP): to the others it is silent, and it does not know.
    pub fn pause(&self) {
        self.process().pause();
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.process().resume();
    }

    /// Asks it to end in order (SIGTERM) and waits until it has.
    pub fn terminate(&self) -> ExitStatus {
        self.process().terminate(ENDS_WITHIN)
    }

    /// Starts it again on its port with its settings, killing it before if it runs.
    pub fn restart(&self) {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        process.kill9();
        for _ in 0..STARTS {
            if let Some(again) = self.settings.spawn(&self.directory, &self.port) {
                *process = Arc::new(again);
                return;
            }
        }
        panic!("a node did not come back on {}", self.address());
    }

    fn process(&self) -> Arc<Process> {
        // a thread whose test failed holds nothing back from the others
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        process.clone()
    }
}
