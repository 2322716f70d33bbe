//! Rows of files that are ours (zones, drivers): anything wrong is an error at its row and column.

use std::path::{Path, PathBuf};

use csv::ByteRecord;

use super::{
    columns::list_headers,
    csv_rows::CsvRows,
    error::InputError,
    fields::normalised,
    open::{Opened, Progress, open},
};
use crate::domain::Place;

/// The rows of a file of which each must be right.
pub(crate) struct StrictRows<'a> {
    file: PathBuf,
    rows: CsvRows<'a>,
    header: Vec<String>,
    record: ByteRecord,
    line: u64,
}

impl<'a> StrictRows<'a> {
    /// Opens a plain, gzip or zstd CSV.
    ///
    /// # Errors
    /// It is missing, empty, damaged or no text.
    pub(crate) fn open(file: &Path, progress: &'a Progress<'a>) -> Result<Self, InputError> {
        let Opened::Text { head, reader } = open(file, progress)? else {
            return Err(InputError::Format {
                file: file.into(),
                kind: "a Parquet file, where a CSV is expected",
            });
        };
        let rows = CsvRows::new(file, &head, reader)?;
        Ok(Self {
            file: file.into(),
            header: rows.header().to_vec(),
            rows,
            record: ByteRecord::new(),
            line: 1,
        })
    }

    /// The column with one of these names, compared without case and punctuation.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub(crate) fn column(&self, names: &[&str]) -> Result<usize, InputError> {
        self.optional(names)?
            .ok_or_else(|| InputError::MissingColumns {
                file: self.file.clone(),
                missing: names[0].to_owned(),
                found: list_headers(&self.header),
                hint: String::new(),
            })
    }

    /// The column with one of these names, if there is one.
    ///
    /// # Errors
    /// There is more than one.
    pub(crate) fn optional(&self, names: &[&str]) -> Result<Option<usize>, InputError> {
        let names: Vec<String> = names.iter().map(|name| normalised(name)).collect();
        let mut fitting =
            (0..self.header.len()).filter(|&i| names.contains(&normalised(&self.header[i])));
        let first = fitting.next();
        match (first, fitting.next()) {
            (Some(first), Some(second)) => Err(InputError::Row {
                file: self.file.clone(),
                row: 1,
                detail: format!(
                    "columns {:?} and {:?} mean the same",
                    self.header[first], self.header[second]
                ),
            }),
            _ => Ok(first),
        }
    }

    /// Steps to the next row.
    ///
    /// # Errors
    /// The file is damaged, or the row does not fit the header.
    pub(crate) fn next(&mut self) -> Result<bool, InputError> {
        let Some(record) = self.rows.next()? else {
            return Ok(false);
        };
        self.record.clone_from(record);
        self.line = self.rows.line();
        let surplus = self
            .record
            .iter()
            .skip(self.header.len())
            .any(|f| !f.is_empty());
        if self.record.len() < self.header.len() || surplus {
            return Err(InputError::Row {
                file: self.file.clone(),
                row: self.line,
                detail: format!(
                    "{} fields where the header has {}",
                    self.record.len(),
                    self.header.len()
                ),
            });
        }
        Ok(true)
    }

    /// The line of the row; the header is 1.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// The text of a field, trimmed.
    ///
    /// # Errors
    /// It is not UTF-8.
    pub(crate) fn text(&self, column: usize) -> Result<&str, InputError> {
        let field = self.record.get(column).unwrap_or_default().trim_ascii();
        std::str::from_utf8(field).map_err(|_| self.refuse(column, "not UTF-8 text"))
    }

    /// A whole number.
    ///
    /// # Errors
    /// It is something else.
    pub(crate) fn whole(&self, column: usize) -> Result<i64, InputError> {
        let text = self.text(column)?;
        text.parse()
            .map_err(|_| self.refuse(column, &format!("{text:?} is not a whole number")))
    }

    /// A place from two fields.
    ///
    /// # Errors
    /// One of them is not a number, or not on earth.
    pub(crate) fn place(&self, lat: usize, lng: usize) -> Result<Place, InputError> {
        use crate::domain::PlaceError;
        Place::new(self.number(lat)?, self.number(lng)?).map_err(|error| {
            let column = match error {
                PlaceError::Lat(_) => lat,
                PlaceError::Lng(_) => lng,
            };
            self.refuse(column, &error.to_string())
        })
    }

    fn number(&self, column: usize) -> Result<f64, InputError> {
        let text = self.text(column)?;
        text.parse()
            .map_err(|_| self.refuse(column, &format!("{text:?} is not a number")))
    }

    /// The error that says what is wrong with a field of this row.
    pub(crate) fn refuse(&self, column: usize, detail: &str) -> InputError {
        InputError::Field {
            file: self.file.clone(),
            row: self.line,
            column: self.header.get(column).cloned().unwrap_or_default(),
            detail: detail.to_owned(),
        }
    }
}
