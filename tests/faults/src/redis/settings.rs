//! With what a server is started.

use std::{fmt::Write as _, path::Path};

use super::RedisServer;
use crate::port::{BUS, Port};

/// What reaches the disk, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AppendOnly {
    /// Nothing: a restart is empty.
    #[default]
    No,
    /// Every write, made durable once a second.
    EverySec,
    /// Every write, made durable before it is answered.
    Always,
}

/// The settings of a server; by default nothing is kept on disk.
#[derive(Debug, Clone, Default)]
pub struct RedisSettings {
    append_only: AppendOnly,
    pub(crate) moved_clock: bool,
    cluster: bool,
    more: Vec<(String, String)>,
}

impl RedisSettings {
    /// Keeps writes in an append-only file.
    #[must_use]
    pub fn append_only(mut self, append_only: AppendOnly) -> Self {
        self.append_only = append_only;
        self
    }

    /// Lets the test move the server's wall clock.
    #[must_use]
    pub fn moved_clock(mut self) -> Self {
        self.moved_clock = true;
        self
    }

    /// Adds a line of `redis.conf`; later lines win.
    #[must_use]
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.more.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn cluster(mut self) -> Self {
        self.cluster = true;
        self
    }

    /// Starts a server.
    pub fn start(self) -> RedisServer {
        RedisServer::start_with(self)
    }

    /// The configuration file of a server in `directory`.
    pub(crate) fn file(&self, directory: &Path, port: &Port) -> String {
        let append = match self.append_only {
            AppendOnly::No => "appendonly no",
            AppendOnly::EverySec => "appendonly yes\nappendfsync everysec",
            AppendOnly::Always => "appendonly yes\nappendfsync always",
        };
        let mut file = format!(
            "bind 127.0.0.1\n\
             dir \"{}\"\n\
             save \"\"\n\
             {append}\n\
             maxmemory-policy noeviction\n\
             # a replica is fed at once: the usual waits of 5 s and 1 s hide races\n\
             repl-diskless-sync no\n\
             repl-diskless-sync-delay 0\n\
             enable-debug-command local\n",
            directory.display()
        );
        if self.cluster {
            let (port, bus) = (port.number(), port.number() + BUS);
            let _ = write!(
                file,
                "cluster-enabled yes\n\
                 cluster-announce-ip 127.0.0.1\n\
                 cluster-announce-port {port}\n\
                 cluster-announce-bus-port {bus}\n"
            );
        }
        for (name, value) in &self.more {
            let _ = writeln!(file, "{name} {value}");
        }
        file
    }
}
