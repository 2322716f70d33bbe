//! How calls and starts fail, and what a server's error says about the execution of a call.

use std::sync::Arc;

use redis::ServerError;

/// Why a call has no reply. No text holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// The call was not executed, and will not be: it may be repeated, after a pause, as it was.
    #[error("not executed: {0}")]
    NotExecuted(Arc<str>),
    /// The call may have been executed, or may yet be: repeat it as it was if that is harmless, or
    /// read what it would have changed (INV-10).
    #[error("outcome unknown: {0}")]
    Unknown(Arc<str>),
    /// The server took the call for wrong. A script may have stopped midway. A defect of ours or of
    /// the server's set-up: to repeat it is of no use.
    #[error("refused by the server: {0}")]
    Refused(Arc<str>),
}

/// Why there is no link at the start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// A TLS file cannot be used.
    #[error("{0}")]
    Tls(Arc<str>),
    /// No usable primary within the time: it may come later.
    #[error("{address}: {reason}")]
    Unreachable {
        /// Without secrets.
        address: Arc<str>,
        /// The last thing that went wrong.
        reason: Arc<str>,
    },
    /// The server is not set up as it must be; the text says what to change.
    #[error("{0}")]
    Unfit(Arc<str>),
}

/// What a server's error means for the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Another server serves the slot: go there (`ask`: this once).
    Redirect {
        /// As the server wrote it.
        to: Box<str>,
        /// The slot stays where it is for other keys.
        ask: bool,
    },
    /// The script is not in the server's cache.
    NoScript,
    /// The server is a replica: a primary before, most likely.
    Demoted,
    /// Not executed, and the server stands as it stood.
    NotExecuted,
    /// The slot map is old, or the cluster is down; not executed.
    MapIsOld,
    /// The connection is not logged in; not executed.
    LoggedOut,
    /// Nothing is proven.
    Refused,
}

/// Judges a server's error.
///
/// That an error proves non-execution has two reasons. Most codes are answered before a command
/// begins. `READONLY`, `OOM`, `MISCONF` and `NOREPLICAS` come out of a running script too, but only
/// from its first write, for a script that has written is let finish (`scriptVerifyWriteCommandAllow`,
/// `scriptVerifyOOM` in `script.c`; before 7.0 `luaRedisGenericCommand`, whose error text carries
/// the code inside). An ACL error is the exception: the second write of a script may be the first
/// one that is not permitted.
pub(super) fn judge(error: &ServerError) -> Verdict {
    let text = error.details().unwrap_or("");
    let from_script = text.contains("@user_script") || text.contains(" script");
    match error.code() {
        code @ ("MOVED" | "ASK") => match text.split_ascii_whitespace().nth(1) {
            Some(to) => Verdict::Redirect {
                to: to.into(),
                ask: code == "ASK",
            },
            None => Verdict::MapIsOld,
        },
        "NOSCRIPT" => Verdict::NoScript,
        "READONLY" | "MASTERDOWN" => Verdict::Demoted,
        "LOADING" | "BUSY" | "TRYAGAIN" | "OOM" | "MISCONF" | "NOREPLICAS" => Verdict::NotExecuted,
        "CLUSTERDOWN" => Verdict::MapIsOld,
        "NOAUTH" => Verdict::LoggedOut,
        "NOPERM" if !from_script => Verdict::NotExecuted,
        // SCRIPT KILL ends only a script that has written nothing
        _ if text.contains("Script killed by user with SCRIPT KILL") => Verdict::NotExecuted,
        "ERR" if from_script => inside(text),
        _ => Verdict::Refused,
    }
}

/// Before 7.0: `Error running script (call to f_…): @user_script:1: @user_script: 1: -OOM …`.
fn inside(text: &str) -> Verdict {
    let code = text
        .rsplit_once(": -")
        .and_then(|(_, error)| error.split_ascii_whitespace().next());
    match code {
        Some("READONLY") => Verdict::Demoted,
        Some("OOM" | "MISCONF") => Verdict::NotExecuted,
        _ => Verdict::Refused,
    }
}

/// `CODE text`, as the server wrote it.
pub(super) fn text_of(error: &ServerError) -> String {
    match error.details() {
        Some(details) => format!("{} {details}", error.code()),
        None => error.code().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use redis::{Value, parse_redis_value};

    use super::*;

    fn error(line: &str) -> ServerError {
        match parse_redis_value(format!("-{line}\r\n").as_bytes()) {
            Ok(Value::ServerError(error)) => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_error_counts_as_not_executed_only_where_that_is_proven() {
        let to = |to: &str, ask| Verdict::Redirect { to: to.into(), ask };
        for (line, verdict) in [
            ("MOVED 3999 127.0.0.1:6381", to("127.0.0.1:6381", false)),
            ("ASK 3999 :6381", to(":6381", true)),
            ("NOSCRIPT No matching script.", Verdict::NoScript),
            (
                "LOADING Redis is loading the dataset in memory",
                Verdict::NotExecuted,
            ),
            ("BUSY Redis is busy running a script.", Verdict::NotExecuted),
            (
                "TRYAGAIN Multiple keys request during rehashing of slot",
                Verdict::NotExecuted,
            ),
            ("CLUSTERDOWN Hash slot not served", Verdict::MapIsOld),
            ("NOAUTH Authentication required.", Verdict::LoggedOut),
            (
                "READONLY You can't write against a read only replica.",
                Verdict::Demoted,
            ),
            (
                "READONLY You can't write against a read only replica. script: 5b4f, on @user_script:3.",
                Verdict::Demoted,
            ),
            (
                "OOM command not allowed when used memory > 'maxmemory'. script: 5b4f, on @user_script:3.",
                Verdict::NotExecuted,
            ),
            (
                "MISCONF Redis is configured to save RDB snapshots",
                Verdict::NotExecuted,
            ),
            (
                "ERR Error running script (call to f_5b4f): @user_script:1: @user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.",
                Verdict::NotExecuted,
            ),
            (
                "ERR Error running script (call to f_5b4f): @user_script:1: @user_script: 1: -READONLY You can't write",
                Verdict::Demoted,
            ),
            (
                "NOPERM User kheya has no permissions to run the 'evalsha' command",
                Verdict::NotExecuted,
            ),
            (
                "NOPERM ACL failure in script: User kheya has no permissions to run the 'xtrim' command",
                Verdict::Refused,
            ),
            (
                "ERR The user executing the script can't run this command or subcommand script: 5b4f, on @user_script:3.",
                Verdict::Refused,
            ),
            (
                "ERR Error running script (call to f_5b4f): @user_script:1: Script killed by user with SCRIPT KILL...",
                Verdict::NotExecuted,
            ),
            (
                "ERR user_script:1: attempt to index a nil value script: 5b4f, on @user_script:1.",
                Verdict::Refused,
            ),
            (
                "WRONGTYPE Operation against a key holding the wrong kind of value",
                Verdict::Refused,
            ),
            (
                "CROSSSLOT Keys in request don't hash to the same slot",
                Verdict::Refused,
            ),
            ("ERR unknown command 'EVALSHAA'", Verdict::Refused),
            ("NEWCODE of a later Redis", Verdict::Refused),
        ] {
            assert_eq!(judge(&error(line)), verdict, "{line}");
            assert_eq!(text_of(&error(line)), line);
        }
    }
}
