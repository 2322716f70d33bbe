//! The wall clock of one server, moved by a test.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
    time::Duration,
};

/// The compiled `clock_shim.c`.
const SHIM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/clock_shim.so"));

/// How far a server's wall clock is ahead of the machine's. It outlives restarts of the server.
#[derive(Debug)]
pub(crate) struct MovedClock {
    shim: PathBuf,
    path: PathBuf,
    file: File,
    offset_us: Mutex<i64>,
}

impl MovedClock {
    /// A clock that tells the machine's time, its files in `directory`.
    pub(crate) fn new(directory: &Path) -> Self {
        let shim = directory.join("clock_shim.so");
        fs::write(&shim, SHIM).unwrap();
        let path = directory.join("clock");
        fs::write(&path, 0_i64.to_ne_bytes()).unwrap();
        Self {
            shim,
            file: File::options().write(true).open(&path).unwrap(),
            path,
            offset_us: Mutex::new(0),
        }
    }

    /// Makes the process that is started read this clock.
    pub(crate) fn prepare(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.shim)
            .env("KHEYA_FAULTS_CLOCK", &self.path);
    }

    pub(crate) fn offset_us(&self) -> i64 {
        *self.offset_us.lock().unwrap()
    }

    pub(crate) fn set_offset_us(&self, offset_us: i64) {
        self.write(&mut self.offset_us.lock().unwrap(), offset_us);
    }

    pub(crate) fn advance(&self, by: Duration) {
        let mut offset_us = self.offset_us.lock().unwrap();
        let moved = *offset_us + i64::try_from(by.as_micros()).unwrap();
        self.write(&mut offset_us, moved);
    }

    /// One aligned write of eight bytes, which the server sees as a whole through its mapping.
    fn write(&self, offset_us: &mut i64, to: i64) {
        self.file.write_all_at(&to.to_ne_bytes(), 0).unwrap();
        *offset_us = to;
    }
}
