//! Where commands and answers of Redis begin and end (RESP2 and RESP3).

/// Cuts a stream into frames, each a whole command or answer. What was looked at is not looked at
/// again, however large the answer and small the pieces in which it comes.
#[derive(Debug, Default)]
pub(super) struct Framer {
    buffer: Vec<u8>,
    /// How far the buffer was understood.
    at: usize,
    /// Elements that the frame still needs; zero before its first byte is read.
    open: u64,
}

impl Framer {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        if self.open == 0 {
            self.open = 1;
        }
        while self.open > 0 {
            let rest = &self.buffer[self.at..];
            let line = rest.windows(2).position(|pair| pair == b"\r\n")?;
            let number = || number(&rest[1..line]);
            let mut end = line + 2;
            let inner = match rest[0] {
                // bulk: its length, its bytes; or nothing
                b'$' | b'=' | b'!' => {
                    if let Some(length) = number() {
                        end += length as usize + 2;
                    }
                    0
                }
                b'*' | b'~' | b'>' => number().unwrap_or(0),
                b'%' => 2 * number().unwrap_or(0),
                // attributes stand before the element that they describe
                b'|' => 2 * number().unwrap_or(0) + 1,
                _ => 0,
            };
            if rest.len() < end {
                return None;
            }
            self.at += end;
            self.open = self.open - 1 + inner;
        }
        let rest = self.buffer.split_off(self.at);
        self.at = 0;
        Some(std::mem::replace(&mut self.buffer, rest))
    }
}

/// A length; none for the -1 of what is null.
fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Whether an answer came unasked (RESP3).
pub(super) fn is_push(answer: &[u8]) -> bool {
    answer.first() == Some(&b'>')
}

/// One command, as rules look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    arguments: Vec<Vec<u8>>,
}

impl Command {
    /// Reads a frame; one that is no array of strings is taken as a single argument.
    pub(super) fn read(frame: &[u8]) -> Self {
        let arguments = Self::strings(frame).unwrap_or_else(|| vec![frame.to_vec()]);
        Self { arguments }
    }

    fn strings(frame: &[u8]) -> Option<Vec<Vec<u8>>> {
        let line = |bytes: &[u8]| bytes.windows(2).position(|pair| pair == b"\r\n");
        let mut end = line(frame.strip_prefix(b"*")?)? + 1;
        let count = number(&frame[1..end])?;
        let mut rest = &frame[end + 2..];
        let mut arguments = Vec::new();
        for _ in 0..count {
            end = line(rest.strip_prefix(b"$")?)? + 1;
            let length = number(&rest[1..end])? as usize;
            let from = end + 2;
            arguments.push(rest.get(from..from + length)?.to_vec());
            rest = rest.get(from + length + 2..)?;
        }
        Some(arguments)
    }

    /// Whether it has this name, in capitals or not.
    pub fn is(&self, name: &str) -> bool {
        let first = self.arguments.first();
        first.is_some_and(|first| first.eq_ignore_ascii_case(name.as_bytes()))
    }

    /// Whether an argument is exactly this: a key, the digest of a script.
    pub fn has(&self, argument: &[u8]) -> bool {
        self.arguments.iter().any(|given| given == argument)
    }

    /// Its name and arguments; of a request that is no command, its bytes.
    pub fn arguments(&self) -> &[Vec<u8>] {
        &self.arguments
    }

    /// Whether clients send it to set up a connection.
    pub fn is_setup(&self) -> bool {
        let setup = [
            "HELLO", "AUTH", "CLIENT", "SELECT", "READONLY", "PING", "ROLE",
        ];
        setup.iter().any(|name| self.is(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_however_the_bytes_are_cut() {
        let frames: [&[u8]; 11] = [
            b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
            b"+OK\r\n",
            b"$-1\r\n",
            b"*-1\r\n",
            b"*0\r\n",
            b"$4\r\na\r\nb\r\n",
            b"*2\r\n*2\r\n:1\r\n_\r\n#t\r\n",
            b"%1\r\n+a\r\n*1\r\n,1.5\r\n",
            b"|1\r\n+ttl\r\n:3\r\n~2\r\n:1\r\n:2\r\n",
            b">2\r\n+message\r\n=5\r\ntxt:x\r\n",
            b"PING\r\n",
        ];
        let whole = frames.concat();
        for size in [1, 2, 3, 7, 64, whole.len()] {
            let mut framer = Framer::default();
            let mut found = Vec::new();
            for piece in whole.chunks(size) {
                framer.push(piece);
                found.extend(std::iter::from_fn(|| framer.next()));
            }
            assert_eq!(found, frames, "in pieces of {size}");
        }
    }

    #[test]
    fn a_command_is_known_by_its_name_and_arguments() {
        let command = Command::read(b"*3\r\n$3\r\nset\r\n$1\r\nk\r\n$4\r\na\r\nb\r\n");
        assert!(command.is("SET") && command.has(b"a\r\nb") && !command.has(b"a"));
        assert!(!command.is_setup());
        assert_eq!(Command::read(b"GET / HTTP/1.1\r\n").arguments().len(), 1);
    }
}
