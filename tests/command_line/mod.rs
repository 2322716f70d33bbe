//! The real `kheya` binary, run as a user runs it.
#![allow(dead_code, reason = "each test file uses a part")]

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

/// What a run of the binary gave.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The binary with arguments, not yet run.
pub(crate) fn kheya<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kheya"));
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs the binary with arguments to its end.
pub(crate) fn run<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Ran {
    Ran::of(&kheya(args).output().unwrap())
}

impl Ran {
    pub(crate) fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Self {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// Passes only a success that complained of nothing.
    pub(crate) fn done(self) -> Self {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{self:?}");
        self
    }

    /// The JSON of a success.
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.done().stdout).unwrap()
    }

    /// Passes only a refusal of the call or its input: exit code 2, no data, one clear message that
    /// names every one of `named`.
    pub(crate) fn refused(&self, named: &[&str]) {
        assert_eq!(self.code, Some(2), "{self:?}");
        assert_eq!(self.stdout, "", "a refusal prints no data");
        for word in named {
            assert!(
                self.stderr.contains(word),
                "{word:?} is not named: {self:?}"
            );
        }
        let speaks_of_us = ["panicked", "RUST_BACKTRACE", "unwrap", "InputError"];
        assert!(
            !speaks_of_us.iter().any(|word| self.stderr.contains(word)),
            "{self:?}"
        );
        let starts =
            self.stderr.matches("kheya: ").count() + self.stderr.matches("error: ").count();
        assert_eq!(starts, 1, "one message: {self:?}");
    }
}

/// A directory of files for one test, gone with it.
pub(crate) struct Desk(TempDir);

impl Desk {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file and gives its path.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// Everything below a directory, hidden files too; empty if it is not there.
pub(crate) fn everything_in(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}
