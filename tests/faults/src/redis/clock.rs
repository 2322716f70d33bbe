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

/// How far a server's wall clock is ahead of the machine's, or where it stands still. It outlives
/// restarts of the server.
#[derive(Debug)]
pub(crate) struct MovedClock {
    shim: PathBuf,
    path: PathBuf,
    file: File,
    set: Mutex<Set>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Set {
    offset_us: i64,
    /// Zero while the clock goes.
    stands_at_us: i64,
}

impl MovedClock {
    /// A clock that tells the machine's time, its files in `directory`.
    pub(crate) fn new(directory: &Path) -> Self {
        let shim = directory.join("clock_shim.so");
        fs::write(&shim, SHIM).unwrap();
        let path = directory.join("clock");
        fs::write(&path, [0; 16]).unwrap();
        Self {
            shim,
            file: File::options().write(true).open(&path).unwrap(),
            path,
            set: Mutex::default(),
        }
    }

    /// Makes the process that is started read this clock.
    pub(crate) fn prepare(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.shim)
            .env("KHEYA_FAULTS_CLOCK", &self.path);
    }

    pub(crate) fn offset_us(&self) -> i64 {
        self.set.lock().unwrap().offset_us
    }

    pub(crate) fn set_offset_us(&self, offset_us: i64) {
        self.change(|set| set.offset_us = offset_us);
    }

    pub(crate) fn stand_at_us(&self, at_us: i64) {
        self.change(|set| set.stands_at_us = at_us);
    }

    pub(crate) fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_micros()).unwrap();
        self.change(|set| match set.stands_at_us {
            0 => set.offset_us += by,
            _ => set.stands_at_us += by,
        });
    }

    /// Aligned writes of eight bytes, each of which the server sees as a whole through its mapping.
    fn change(&self, change: impl FnOnce(&mut Set)) {
        let mut set = self.set.lock().unwrap();
        change(&mut set);
        let write = |value: i64, at| self.file.write_all_at(&value.to_ne_bytes(), at).unwrap();
        write(set.offset_us, 0);
        write(set.stands_at_us, 8);
    }
}
