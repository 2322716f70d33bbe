//! Rows of delimited text: quoted fields, any line ending, a byte-order mark, bytes that are not
//! UTF-8.

use std::{
    cell::Cell as Shared,
    io::{self, Read},
    path::{Path, PathBuf},
    rc::Rc,
};

use csv::ByteRecord;

use super::{error::InputError, open::io_error};

/// Longest row: far beyond any real one, small enough that a file without line ends or with an
/// open quote cannot fill the memory.
const MAX_ROW_BYTES: u64 = 1 << 20;

/// The records of one text, the header apart.
pub(crate) struct CsvRows<'a> {
    file: PathBuf,
    reader: csv::Reader<Guard<'a>>,
    since_row: Rc<Shared<u64>>,
    header: Vec<String>,
    record: ByteRecord,
}

/// Passes bytes on until too many have come since the last whole row, and ends the last line if
/// the file does not.
struct Guard<'a> {
    reader: Box<dyn Read + 'a>,
    since_row: Rc<Shared<u64>>,
    line_ended: bool,
}

impl Read for Guard<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.since_row.get() > MAX_ROW_BYTES {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        let mut read = self.reader.read(buffer)?;
        if let (0, false, Some(first)) = (read, self.line_ended, buffer.first_mut()) {
            *first = b'\n';
            read = 1;
        }
        self.line_ended = read == 0 || buffer[read - 1] == b'\n';
        self.since_row.set(self.since_row.get() + read as u64);
        Ok(read)
    }
}

impl<'a> CsvRows<'a> {
    /// Reads the header; `head` is the start of what `reader` gives.
    ///
    /// # Errors
    /// The text is damaged, or has nothing but blank lines.
    pub(crate) fn new(
        file: &Path,
        head: &[u8],
        reader: Box<dyn Read + 'a>,
    ) -> Result<Self, InputError> {
        let since_row = Rc::new(Shared::new(0));
        let guard = Guard {
            reader,
            since_row: Rc::clone(&since_row),
            line_ended: true,
        };
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter(head))
            .buffer_capacity(1 << 16)
            .from_reader(guard);
        let mut rows = Self {
            file: file.into(),
            reader,
            since_row,
            header: Vec::new(),
            record: ByteRecord::new(),
        };
        if rows.next()?.is_none() {
            return Err(InputError::Empty { file: file.into() });
        }
        rows.header = rows
            .record
            .iter()
            .map(|field| {
                let field = field.strip_prefix(b"\xef\xbb\xbf").unwrap_or(field);
                header_text(&String::from_utf8_lossy(field))
            })
            .collect();
        // Some files end every line with a delimiter, the header too: a column without a name.
        while rows.header.len() > 1 && rows.header.last().is_some_and(String::is_empty) {
            rows.header.pop();
        }
        Ok(rows)
    }

    /// The headers, trimmed.
    pub(crate) fn header(&self) -> &[String] {
        &self.header
    }

    /// The next row that is not blank.
    ///
    /// # Errors
    /// The text is damaged, or a row is longer than a mebibyte.
    pub(crate) fn next(&mut self) -> Result<Option<&ByteRecord>, InputError> {
        loop {
            let more = self.reader.read_byte_record(&mut self.record);
            self.since_row.set(0);
            match more {
                Ok(true) if is_blank(&self.record) => {}
                Ok(true) => return Ok(Some(&self.record)),
                Ok(false) => return Ok(None),
                Err(error) => return Err(self.error(error)),
            }
        }
    }

    /// The line on which the current row starts; the first is 1.
    pub(crate) fn line(&self) -> u64 {
        // The record's own position may lie before blank lines above it; counting back from its
        // end goes wrong only for an open quote at the end of the file.
        let own = self.record.position().map_or(1, csv::Position::line);
        own.max(self.reader.position().line().saturating_sub(self.lines()))
    }

    /// How many lines the current row spans: more than one when a quoted field holds line ends.
    pub(crate) fn lines(&self) -> u64 {
        let text = self.record.as_slice();
        text.split(|&b| b == b'\n').count() as u64
    }

    fn error(&self, error: csv::Error) -> InputError {
        let row = self.reader.position().line();
        match error.into_kind() {
            csv::ErrorKind::Io(source) if source.kind() == io::ErrorKind::FileTooLarge => {
                InputError::Row {
                    file: self.file.clone(),
                    row,
                    detail: "longer than 1 MiB; is a quote left open?".into(),
                }
            }
            csv::ErrorKind::Io(source) => io_error(&self.file, source),
            other => InputError::Damaged {
                file: self.file.clone(),
                detail: format!("{other:?}"),
            },
        }
    }
}

/// A header as one line, trimmed.
pub(crate) fn header_text(field: &str) -> String {
    let text: String = field
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    text.trim().to_owned()
}

fn is_blank(record: &ByteRecord) -> bool {
    record.len() == 1 && record[0].trim_ascii().is_empty()
}

/// The delimiter that the first line holds most of; the comma when it holds none.
fn delimiter(head: &[u8]) -> u8 {
    let text = head.trim_ascii_start();
    let end = text
        .iter()
        .position(|&b| b == b'\n' || b == b'\r')
        .unwrap_or(text.len());
    let mut quoted = false;
    let mut counts = [(0_usize, b','), (0, b';'), (0, b'\t'), (0, b'|')];
    for &byte in &text[..end] {
        quoted ^= byte == b'"';
        if let Some(count) = counts.iter_mut().find(|(_, d)| *d == byte && !quoted) {
            count.0 += 1;
        }
    }
    let most = counts.iter().map(|(n, _)| *n).max();
    counts
        .iter()
        .find(|(n, _)| Some(*n) == most)
        .map_or(b',', |(_, d)| *d)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &[u8]) -> Vec<Vec<String>> {
        let mut rows = CsvRows::new(Path::new("t"), text, Box::new(text)).unwrap();
        let mut all = vec![rows.header().to_vec()];
        while let Some(record) = rows.next().unwrap() {
            all.push(
                record
                    .iter()
                    .map(|f| String::from_utf8_lossy(f).into_owned())
                    .collect(),
            );
        }
        all
    }

    #[test]
    fn marks_line_ends_quotes_and_blank_lines_are_read_through() {
        let text = b"\xef\xbb\xbf\"a\", b ,\r\n\r\n1,\"x,\"\"y\"\"\"\r\n  \r\n2,\xff\r\n";
        assert_eq!(
            rows(text),
            [vec!["a", "b"], vec!["1", "x,\"y\""], vec!["2", "\u{fffd}"]]
        );
    }

    #[test]
    fn the_delimiter_is_the_one_the_header_holds_most_of() {
        assert_eq!(delimiter(b"a;b;c,d\n"), b';');
        assert_eq!(delimiter(b"a\tb\n"), b'\t');
        assert_eq!(delimiter(b"\"a;b;c\",d\n"), b',');
        assert_eq!(delimiter(b"a"), b',');
    }

    #[test]
    fn a_row_without_end_is_an_error_and_not_all_the_memory() {
        let endless = io::repeat(b'x').take(1 << 40);
        let head = b"a,b\n\"".to_vec();
        let reader = Box::new(io::Cursor::new(head.clone()).chain(endless));
        let mut rows = CsvRows::new(Path::new("t"), &head, reader).unwrap();
        let text = rows.next().unwrap_err().to_string();
        assert_eq!(text, "t: row 2: longer than 1 MiB; is a quote left open?");
    }
}
