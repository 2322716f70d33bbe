//! What is left of a schedule that failed.

use std::{fmt::Write as _, fs, path::PathBuf, time::Instant};

use serde_json::Value;

use crate::{
    calls::{Outcome, Told},
    check::Evidence,
    stage::Stage,
};

/// Longest part of an answer that is written down.
const ANSWER: usize = 400;

/// Writes down everything that is known: outboxes, reports, calls, the words of every process. Gives
/// the directory.
pub(crate) fn write_down(
    name: &str,
    began: Instant,
    evidence: &[Evidence],
    stage: &Stage,
    broken: &[String],
) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    let write = |name: String, text: String| fs::write(directory.join(name), text).unwrap();
    write("broken".into(), broken.join("\n"));
    for region in evidence {
        let name = &region.region;
        write(format!("{name}-events.jsonl"), lines(region.outbox.iter()));
        write(format!("{name}-seen.jsonl"), lines(region.seen.values()));
        write(
            format!("{name}-windows.jsonl"),
            lines(region.reports.iter()),
        );
        let calls = region.told.iter().map(|told| call(told, began));
        write(format!("{name}-calls"), calls.collect());
    }
    for (number, node) in stage.nodes.iter().enumerate() {
        write(format!("n{number}.stderr"), node.stderr());
    }
    write("redis.log".into(), stage.redis.primary().log());
    directory
}

fn lines<'a>(values: impl Iterator<Item = &'a Value>) -> String {
    let mut text = String::new();
    for value in values {
        let _ = writeln!(text, "{value}");
    }
    text
}

/// A call with its tries, in milliseconds since the schedule began.
fn call(told: &Told, began: Instant) -> String {
    let mut text = format!("{:?}\n", told.asked);
    for tried in &told.tries {
        let since = |at: Instant| at.saturating_duration_since(began).as_millis();
        let sent = since(tried.sent);
        let answered = tried.answered.map(since);
        let _ = write!(text, "    {sent} n{} {answered:?} ", tried.node);
        let _ = match &tried.outcome {
            Outcome::Waiting => writeln!(text, "waiting"),
            Outcome::Answered { status, body, .. } => writeln!(text, "{status} {body:.ANSWER$}"),
            Outcome::Cut(why) => writeln!(text, "cut: {why:.ANSWER$}"),
        };
    }
    text
}
