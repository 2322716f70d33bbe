//! Opens a file by what it holds, not by its name: plain, gzip or zstd text, or Parquet.

use std::{
    cell::Cell as Shared,
    fs::File,
    io::{self, Cursor, Read},
    path::Path,
};

use super::error::InputError;

/// Bytes looked at to tell what a file is.
const HEAD_BYTES: u64 = 8 * 1024;

/// Bytes between two reports of progress.
const REPORT_EVERY: u64 = 256 * 1024;

/// The bytes read so far out of all of a run's files, told to whoever watches.
pub(crate) struct Progress<'a> {
    done: Shared<u64>,
    told: Shared<u64>,
    total: u64,
    report: &'a (dyn Fn(u64, u64) + Sync),
}

impl<'a> Progress<'a> {
    pub(crate) fn new(total: u64, report: &'a (dyn Fn(u64, u64) + Sync)) -> Self {
        Self {
            done: Shared::new(0),
            told: Shared::new(0),
            total,
            report,
        }
    }

    /// Bytes done so far.
    pub(crate) fn done(&self) -> u64 {
        self.done.get()
    }

    /// Counts bytes up to `done` of them all.
    pub(crate) fn reach(&self, done: u64) {
        let done = done.max(self.done.get()).min(self.total);
        self.done.set(done);
        if done - self.told.get() >= REPORT_EVERY {
            self.told.set(done);
            (self.report)(done, self.total);
        }
    }

    /// Says that everything is read.
    pub(crate) fn finish(&self) {
        (self.report)(self.total, self.total);
    }
}

/// A file whose reads are counted.
struct Counted<'a> {
    file: File,
    progress: &'a Progress<'a>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.progress.reach(self.progress.done() + read as u64);
        Ok(read)
    }
}

/// What a file turned out to be, ready to be read.
pub(crate) enum Opened<'a> {
    /// Text, unpacked, with its first bytes.
    Text {
        /// The first bytes, enough for the header of any sane file.
        head: Vec<u8>,
        /// All bytes from the start.
        reader: Box<dyn Read + 'a>,
    },
    /// Parquet, which is read by seeking.
    Parquet(File),
}

/// What the first bytes of a file say that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Gzip,
    Zstd,
    Parquet,
    Text,
}

impl Format {
    fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            [b'P', b'A', b'R', b'1', ..] => Self::Parquet,
            _ => Self::Text,
        }
    }
}

/// Opens `path` and unpacks it as far as needed.
///
/// # Errors
/// It is missing, a directory, empty, damaged, or of a kind that cannot be read here.
pub(crate) fn open<'a>(path: &Path, progress: &'a Progress<'a>) -> Result<Opened<'a>, InputError> {
    let file = open_file(path)?;
    let mut packed = Counted { file, progress };
    let head = read_head(&mut packed).map_err(|source| io_error(path, source))?;
    let all = Cursor::new(head.clone()).chain(packed);
    let unpacked: Box<dyn Read + 'a> = match Format::of(&head) {
        Format::Parquet => return open_file(path).map(Opened::Parquet),
        Format::Text => Box::new(all),
        Format::Gzip => Box::new(flate2::read::MultiGzDecoder::new(io::BufReader::new(all))),
        Format::Zstd => Box::new(
            zstd::stream::read::Decoder::new(all).map_err(|source| io_error(path, source))?,
        ),
    };
    open_text(path, unpacked)
}

fn open_text<'a>(path: &Path, mut unpacked: Box<dyn Read + 'a>) -> Result<Opened<'a>, InputError> {
    let head = read_head(&mut unpacked).map_err(|source| io_error(path, source))?;
    if head.is_empty() {
        return Err(InputError::Empty { file: path.into() });
    }
    if let Some(kind) = not_text(&head) {
        return Err(InputError::Format {
            file: path.into(),
            kind,
        });
    }
    Ok(Opened::Text {
        head: head.clone(),
        reader: Box::new(Cursor::new(head).chain(unpacked)),
    })
}

/// Opens a file that exists and is no directory.
fn open_file(path: &Path) -> Result<File, InputError> {
    if path.is_dir() {
        return Err(InputError::Directory { file: path.into() });
    }
    File::open(path).map_err(|source| io_error(path, source))
}

fn read_head(reader: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    reader.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(head)
}

/// Names what the bytes are when they are not text that can be read here.
fn not_text(head: &[u8]) -> Option<&'static str> {
    const KNOWN: [(&[u8], &str); 10] = [
        (b"PK\x03\x04", "a zip archive or a spreadsheet"),
        (b"BZh", "a bzip2 file"),
        (b"\xfd7zXZ\0", "an xz file"),
        (b"7z\xbc\xaf", "a 7z archive"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"%PDF", "a PDF document"),
        (b"\xff\xfe", "UTF-16 text"),
        (b"\xfe\xff", "UTF-16 text"),
        (b"PAR1", "a Parquet file packed once more"),
        (b"\x1f\x8b", "a gzip file packed twice"),
    ];
    let known = KNOWN.iter().find(|(magic, _)| head.starts_with(magic));
    if let Some((_, kind)) = known {
        return Some(kind);
    }
    let first = head.trim_ascii_start().first();
    match first {
        Some(b'{' | b'[') => Some("JSON"),
        Some(b'<') => Some("a web page or XML"),
        _ => head.contains(&0).then_some("a binary file"),
    }
}

/// An error of the system, or of a decoder (which says that the data is wrong or cut short).
pub(crate) fn io_error(path: &Path, source: io::Error) -> InputError {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    match source.kind() {
        InvalidData | InvalidInput | Other | UnexpectedEof => InputError::Damaged {
            file: path.into(),
            detail: source.to_string(),
        },
        _ => InputError::Io {
            file: path.into(),
            source,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_told_by_its_first_bytes() {
        assert_eq!(Format::of(b"\x1f\x8b\x08"), Format::Gzip);
        assert_eq!(Format::of(b"\x28\xb5\x2f\xfd"), Format::Zstd);
        assert_eq!(Format::of(b"PAR1"), Format::Parquet);
        assert_eq!(Format::of(b"a,b"), Format::Text);
        assert_eq!(Format::of(b""), Format::Text);
    }

    #[test]
    fn what_is_not_text_is_named() {
        assert_eq!(
            not_text(b"PK\x03\x04..."),
            Some("a zip archive or a spreadsheet")
        );
        assert_eq!(not_text(b"a\0b"), Some("a binary file"));
        assert_eq!(not_text(b"  {\"a\":1}"), Some("JSON"));
        assert_eq!(not_text(b"id,caf\xe9"), None);
    }
}
