//! The command line. Data goes to stdout, everything else to stderr; exit codes are 0 done, 1 it
//! failed, 2 the call or the input was wrong.

mod demand;
mod demand_model;
mod explain;
mod generate;
mod instance;
mod progress;
mod replay;
mod serve;
mod solve;
mod tune;
mod verify;

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
    process::ExitCode,
};

use clap::{Parser, Subcommand, ValueEnum};

use crate::domain::DurationMs;

#[derive(Parser)]
#[command(
    name = "kheya",
    version,
    about = "Batched assignment optimizer for ride-hailing dispatch"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Solve one window: an .asn instance or a WINDOW.json
    Solve(solve::SolveArgs),
    /// Say why a request of a window got its driver, and what a nearer one would cost everybody
    Explain(explain::ExplainArgs),
    /// Replay recorded demand and compare batch with the greedy rules
    Replay(Box<replay::ReplayArgs>),
    /// Find the window and limits that serve recorded demand best
    Tune(Box<tune::TuneArgs>),
    /// Serve live regions over HTTP
    Serve(Box<serve::ServeArgs>),
    /// Write the recorded demand of a made-up city
    Generate(generate::GenerateArgs),
}

/// How figures are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table for people
    Human,
    /// One JSON object
    Json,
}

/// Why a command ended early.
enum Failure {
    /// The call or the input was wrong: exit code 2.
    Input(String),
    /// It failed: exit code 1.
    Broken(String),
}

impl Failure {
    fn input(error: &(impl ToString + ?Sized)) -> Self {
        Self::Input(error.to_string())
    }

    fn broken(error: &(impl ToString + ?Sized)) -> Self {
        Self::Broken(error.to_string())
    }
}

/// Runs the command of this process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::from(error.use_stderr()) * 2);
        }
    };
    let done = match cli.command {
        Command::Solve(args) => solve::solve(&args),
        Command::Explain(args) => explain::explain(&args),
        Command::Replay(args) => replay::replay(&args),
        Command::Tune(args) => tune::tune(&args),
        Command::Serve(args) => serve::serve(&args),
        Command::Generate(args) => generate::generate(&args),
    };
    let (code, message) = match done {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Input(message)) => (2, message),
        Err(Failure::Broken(message)) => (1, message),
    };
    let _ = writeln!(io::stderr(), "kheya: {message}");
    ExitCode::from(code)
}

/// Checks that files can be put into the directory that `flag` names, which may still have to be
/// made: said before the long work rather than after it.
fn check_out(flag: &str, out: &Path) -> Result<(), Failure> {
    let refused = |detail: &dyn std::fmt::Display| {
        Failure::Input(format!("{flag} {}: {detail}", out.display()))
    };
    let standing = out.ancestors().find(|path| path.exists());
    let standing = standing.unwrap_or(Path::new("."));
    if !standing.is_dir() {
        let detail = format!("{} is not a directory", standing.display());
        return Err(refused(&detail));
    }
    let probe = standing.join(format!(".kheya-{}.partial", std::process::id()));
    File::create_new(&probe).map_err(|error| refused(&error))?;
    fs::remove_file(&probe).map_err(|error| refused(&error))
}

/// Checks that a file can be written where `flag` says: its directory is there, and it is no
/// directory itself.
fn check_file(flag: &str, file: &Path) -> Result<(), Failure> {
    let refused = |detail: &dyn std::fmt::Display| {
        Failure::Input(format!("{flag} {}: {detail}", file.display()))
    };
    if file.is_dir() {
        return Err(refused(&"is a directory"));
    }
    let parent = file.parent().filter(|p| !p.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    if !parent.is_dir() {
        let detail = format!("there is no directory {}", parent.display());
        return Err(refused(&detail));
    }
    let probe = parent.join(format!(".kheya-{}.partial", std::process::id()));
    File::create_new(&probe).map_err(|error| refused(&error))?;
    fs::remove_file(&probe).map_err(|error| refused(&error))
}

/// Prints an answer. A reader that hangs up early (`| head`) is no failure.
fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Broken(format!("stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// Reads a duration such as `3s`, `500ms` or `1m 30s`.
fn duration(text: &str) -> Result<DurationMs, String> {
    let duration = humantime::parse_duration(text)
        .map_err(|error| format!("{error}; write a number with its unit, such as 3s or 500ms"))?;
    if duration.subsec_nanos() % 1_000_000 != 0 {
        return Err("whole milliseconds are the finest".into());
    }
    Ok(DurationMs::new(
        i64::try_from(duration.as_millis()).unwrap_or(i64::MAX),
    ))
}
