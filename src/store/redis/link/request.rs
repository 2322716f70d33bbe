//! What a call sends, and how its reply is read.

use redis::{Cmd, Pipeline, ServerError, Value};

use super::error::{Verdict, judge};

/// A Lua script with its hash.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    text: &'static str,
    sha: String,
}

impl Script {
    /// Takes the SHA-1 of the text, by which servers know it.
    pub(crate) fn new(text: &'static str) -> Self {
        let sha = redis::Script::new(text).get_hash().to_owned();
        Self { text, sha }
    }

    /// In lower-case hexadecimal.
    pub(crate) fn sha(&self) -> &str {
        &self.sha
    }
}

/// A call: everything of it lies in one slot.
#[derive(Clone, Copy)]
pub(super) enum Request<'a> {
    Script {
        script: &'a Script,
        keys: &'a [&'a str],
        args: &'a [&'a [u8]],
    },
    Command(&'a Cmd),
    /// Commands with one reply each, in a transaction if the pipeline is atomic.
    Reads(&'a Pipeline),
}

/// How a request is sent this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Manner {
    /// The slot is on its way to this server: it must be asked explicitly.
    pub(super) ask: bool,
    /// The server does not have the script.
    pub(super) load: bool,
}

impl Request<'_> {
    /// The commands as they are sent. They stand together on the connection: nothing comes between
    /// them.
    pub(super) fn assemble(&self, manner: Manner) -> Pipeline {
        let mut pipeline = Pipeline::new();
        let ask = |pipeline: &mut Pipeline| {
            if manner.ask {
                pipeline.cmd("ASKING");
            }
        };
        match self {
            Self::Script { script, keys, args } => {
                if manner.load {
                    pipeline.cmd("SCRIPT").arg("LOAD").arg(script.text);
                }
                ask(&mut pipeline);
                pipeline.cmd("EVALSHA").arg(script.sha()).arg(keys.len());
                for key in *keys {
                    pipeline.arg(key);
                }
                for arg in *args {
                    pipeline.arg(arg);
                }
            }
            Self::Command(command) => {
                ask(&mut pipeline);
                pipeline.add_command((*command).clone());
            }
            // the flag that ASKING sets lasts for a whole transaction, else for one command
            Self::Reads(reads) if reads.is_transaction() => {
                ask(&mut pipeline);
                pipeline.cmd("MULTI");
                for command in reads.cmd_iter() {
                    pipeline.add_command(command.clone());
                }
                pipeline.cmd("EXEC");
            }
            Self::Reads(reads) => {
                for command in reads.cmd_iter() {
                    ask(&mut pipeline);
                    pipeline.add_command(command.clone());
                }
            }
        }
        pipeline
    }

    /// The replies that the caller asked for, out of those to [`Self::assemble`].
    ///
    /// # Errors
    /// The error that says why the request failed.
    pub(super) fn read(
        &self,
        manner: Manner,
        mut replies: Vec<Value>,
    ) -> Result<Vec<Value>, ServerError> {
        match self {
            Self::Script { .. } | Self::Command(_) => {
                let last = replies.pop();
                match last {
                    // the script could not be loaded: why, is what counts
                    Some(Value::ServerError(error))
                        if judge(&error) == Verdict::NoScript && manner.load =>
                    {
                        Err(first_error(&replies).unwrap_or(error))
                    }
                    Some(Value::ServerError(error)) => Err(error),
                    last => Ok(last.into_iter().collect()),
                }
            }
            Self::Reads(reads) if reads.is_transaction() => {
                let last = replies.pop();
                match last {
                    // EXECABORT; the reason was told when the command was queued
                    Some(Value::ServerError(error)) => Err(first_error(&replies).unwrap_or(error)),
                    Some(Value::Array(items)) => without_errors(items),
                    last => Ok(last.into_iter().collect()),
                }
            }
            Self::Reads(_) => {
                if manner.ask {
                    let mut at = 0;
                    replies.retain(|_| {
                        at += 1;
                        at % 2 == 0
                    });
                }
                without_errors(replies)
            }
        }
    }
}

fn without_errors(replies: Vec<Value>) -> Result<Vec<Value>, ServerError> {
    match first_error(&replies) {
        Some(error) => Err(error),
        None => Ok(replies),
    }
}

fn first_error(replies: &[Value]) -> Option<ServerError> {
    replies.iter().find_map(|reply| match reply {
        Value::ServerError(error) => Some(error.clone()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use redis::parse_redis_value;

    use super::*;

    const ASK: Manner = Manner {
        ask: true,
        load: false,
    };
    const LOAD: Manner = Manner {
        ask: true,
        load: true,
    };

    fn sent(request: &Request<'_>, manner: Manner) -> String {
        let bytes = request.assemble(manner).get_packed_pipeline();
        let text = String::from_utf8(bytes).unwrap();
        let words = text
            .split("\r\n")
            .filter(|word| !word.starts_with(['$', '*']));
        words.collect::<Vec<_>>().join(" ").trim_end().to_owned()
    }

    fn values(lines: &[&str]) -> Vec<Value> {
        let value = |line: &&str| parse_redis_value(format!("{line}\r\n").as_bytes()).unwrap();
        lines.iter().map(value).collect()
    }

    #[test]
    fn a_script_is_sent_by_its_hash_and_loaded_where_it_is_missing() {
        let script = Script::new("return 1");
        assert_eq!(script.sha(), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
        let request = Request::Script {
            script: &script,
            keys: &["{r}a", "{r}b"],
            args: &[b"x"],
        };
        let evalsha = format!("EVALSHA {} 2 {{r}}a {{r}}b x", script.sha());
        assert_eq!(sent(&request, Manner::default()), evalsha);
        assert_eq!(
            sent(&request, LOAD),
            format!("SCRIPT LOAD return 1 ASKING {evalsha}")
        );
        let reply = request.read(LOAD, values(&["+sha", "+OK", ":7"]));
        assert_eq!(reply, Ok(vec![Value::Int(7)]));
        let denied = request.read(LOAD, values(&["-NOPERM no", "+OK", "-NOSCRIPT no"]));
        assert_eq!(denied.unwrap_err().code(), "NOPERM");
    }

    #[test]
    fn a_transaction_that_is_redirected_tells_where_to() {
        let mut reads = redis::pipe();
        reads.atomic().cmd("GET").arg("a").cmd("GET").arg("b");
        let request = Request::Reads(&reads);
        assert_eq!(sent(&request, ASK), "ASKING MULTI GET a GET b EXEC");
        let replies = values(&["+OK", "-MOVED 1 h:2", "-MOVED 1 h:2", "-EXECABORT no"]);
        let error = request.read(Manner::default(), replies).unwrap_err();
        assert_eq!(error.code(), "MOVED");
        let replies = values(&["+OK", "+QUEUED", "+QUEUED", "*2\r\n:1\r\n:2"]);
        let found = request.read(Manner::default(), replies);
        assert_eq!(found, Ok(vec![Value::Int(1), Value::Int(2)]));
    }

    #[test]
    fn plain_reads_are_asked_for_one_by_one() {
        let mut reads = redis::pipe();
        reads.cmd("GET").arg("a").cmd("GET").arg("b");
        let request = Request::Reads(&reads);
        assert_eq!(sent(&request, ASK), "ASKING GET a ASKING GET b");
        let found = request.read(ASK, values(&["+OK", ":1", "+OK", ":2"]));
        assert_eq!(found, Ok(vec![Value::Int(1), Value::Int(2)]));
        let failed = request.read(Manner::default(), values(&[":1", "-TRYAGAIN no"]));
        assert_eq!(failed.unwrap_err().code(), "TRYAGAIN");
    }
}
