//! A process under test: signalled, watched, and never left behind.
//!
//! Beside each process waits a small shell that holds the reading end of a pipe from this test
//! binary. When the binary ends in whatever way (a panic, `exit`, SIGKILL, a server kept in a
//! static), the pipe closes and the shell kills the process, stopped or not, and removes its
//! directory. Processes have groups of their own: a Ctrl-C for the tests does not reach them first.
//!
//! What breaks it: SIGKILL of that shell itself.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::Write as _,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use crate::waiting::wait_until;

/// Starts the watching shell, orphaned so that the process sees no child that it does not know, and
/// becomes the process under the same id. A line on the pipe means that there is nothing to kill any
/// more; its end without one, that the test binary is gone. The shell ignores signals: when a parent
/// of a stopped process goes, the system hangs up on the whole group.
const GUARDED: &str = r#"
directory=$1; shift
exec 3<&0
( ( trap '' HUP INT TERM; read -r ended <&3 || { kill -KILL $$; rm -rf -- "$directory"; } ) 2>/dev/null & )
exec "$@" </dev/null 3<&-
"#;

/// Longest time that a signal takes to show.
const SIGNALLED: Duration = Duration::from_secs(10);

/// How many last lines of its output a process leaves with a test that fails.
const LAST_WORDS: usize = 40;

/// A running or ended process.
#[derive(Debug)]
pub struct Process {
    name: String,
    pid: u32,
    output: PathBuf,
    child: Mutex<(Child, Option<ChildStdin>)>,
    paused: AtomicBool,
}

impl Process {
    /// Starts `program` in `directory`, which goes with the test binary; what it prints is appended
    /// to `output`. `prepare` may change its environment.
    pub fn start<A: AsRef<OsStr>>(
        program: &Path,
        arguments: impl IntoIterator<Item = A>,
        directory: &Path,
        output: &Path,
        prepare: impl FnOnce(&mut Command),
    ) -> Self {
        let print = File::options()
            .create(true)
            .append(true)
            .open(output)
            .unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", GUARDED, "sh"]).arg(directory);
        command.arg(program).args(arguments).current_dir(directory);
        command
            .stdin(Stdio::piped())
            .stdout(print.try_clone().unwrap())
            .stderr(print)
            .process_group(0);
        prepare(&mut command);
        let mut child = command.spawn().unwrap();
        let guard = child.stdin.take();
        Self {
            name: program.file_name().unwrap().display().to_string(),
            pid: child.id(),
            output: output.to_owned(),
            child: Mutex::new((child, guard)),
            paused: AtomicBool::new(false),
        }
    }

    /// Its id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Everything that it and its predecessors in the same place have printed.
    pub fn printed(&self) -> String {
        fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// How it ended, if it has.
    pub fn ended(&self) -> Option<ExitStatus> {
        let mut child = self.child.lock().unwrap();
        let ended = child.0.try_wait().unwrap();
        if ended.is_some()
            && let Some(mut guard) = child.1.take()
        {
            // its id may be another's from now on
            let _ = guard.write_all(b"ended\n");
        }
        ended
    }

    /// Whether it has not ended; a paused process has not.
    pub fn is_running(&self) -> bool {
        self.ended().is_none()
    }

    /// Whether it was stopped by [`Process::pause`].
    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::SeqCst)
    }

    /// Kills it without a chance to do anything more (SIGKILL); nothing if it has ended.
    pub fn kill9(&self) {
        if self.ended().is_none() {
            self.child.lock().unwrap().0.kill().unwrap();
        }
        self.wait_end(SIGNALLED);
        self.paused.store(false, Ordering::SeqCst);
    }

    /// Stops it where it stands (SIGSTOP): its sockets stay open, and nothing answers.
    pub fn pause(&self) {
        self.signal("STOP");
        wait_until("a process stops", SIGNALLED, || self.state() == Some('T'));
        self.paused.store(true, Ordering::SeqCst);
    }

    /// Lets it go on (SIGCONT).
    pub fn resume(&self) {
        self.signal("CONT");
        wait_until("a process goes on", SIGNALLED, || self.state() != Some('T'));
        self.paused.store(false, Ordering::SeqCst);
    }

    /// Asks it to end (SIGTERM) and waits for so long.
    pub fn terminate(&self, patience: Duration) -> ExitStatus {
        self.signal("TERM");
        self.wait_end(patience)
    }

    /// Waits for its end.
    pub fn wait_end(&self, patience: Duration) -> ExitStatus {
        let what = format!("{} ends", self.name);
        wait_until(&what, patience, || self.ended().is_some());
        self.ended().unwrap()
    }

    fn signal(&self, name: &str) {
        assert!(self.is_running(), "{} has ended already", self.name);
        // not reaped yet: the id is still its own
        let sent = Command::new("sh")
            .args(["-c", &format!("kill -{name} {}", self.pid)])
            .status();
        assert!(sent.unwrap().success(), "kill -{name} {}", self.name);
    }

    /// The letter of its state in `/proc`.
    fn state(&self) -> Option<char> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        // the name before it may hold spaces and brackets
        stat.rsplit_once(") ")?.1.chars().next()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if thread::panicking() {
            let printed = self.printed();
            let lines: Vec<&str> = printed.lines().collect();
            let last = &lines[lines.len().saturating_sub(LAST_WORDS)..];
            let ended = self.ended().map(|status| status.to_string());
            let (name, last) = (&self.name, last.join("\n"));
            eprintln!("-- {name} ({}), ended: {ended:?}\n{last}\n--", self.pid);
        }
        self.kill9();
    }
}
