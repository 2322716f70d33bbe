//! Why files could not be read: each message is one sentence that names the place and the remedy.

use std::{io, path::PathBuf};

use super::report::Reason;

/// Why recorded demand, a zones file or a fleet file could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// No file was named.
    #[error("no file was given to read")]
    NoFile,
    /// The same file was named twice: its trips would count twice.
    #[error("{} is given twice", file.display())]
    SameFile {
        /// The file.
        file: PathBuf,
    },
    /// The file cannot be opened or read.
    #[error("{} cannot be read: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A directory, where a file is needed.
    #[error("{} is a directory, not a file", file.display())]
    Directory {
        /// The directory.
        file: PathBuf,
    },
    /// No byte in it, after unpacking.
    #[error("{} is empty", file.display())]
    Empty {
        /// The file.
        file: PathBuf,
    },
    /// Not a format that can be read here.
    #[error("{} is {kind}; CSV (plain, gzip or zstd) or Parquet is needed", file.display())]
    Format {
        /// The file.
        file: PathBuf,
        /// What it seems to be.
        kind: &'static str,
    },
    /// The right format, but damaged or cut short.
    #[error("{} is damaged: {detail}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What the decoder said.
        detail: String,
    },
    /// The first row holds data.
    #[error(
        "{} has no header row: its first row is {first:?}; add one, such as {example}",
        file.display()
    )]
    NoHeader {
        /// The file.
        file: PathBuf,
        /// The first row.
        first: String,
        /// A header that would do.
        example: &'static str,
    },
    /// A header and nothing below it.
    #[error("{} has a header but no rows", file.display())]
    NoRows {
        /// The file.
        file: PathBuf,
    },
    /// Columns that are needed were not found.
    #[error("{} has no column for {missing}; its columns are {found}{hint}", file.display())]
    MissingColumns {
        /// The file.
        file: PathBuf,
        /// The fields without a column.
        missing: String,
        /// The columns there are.
        found: String,
        /// What could be done, with its leading separator.
        hint: String,
    },
    /// Several columns fit one field.
    #[error(
        "{}: columns {first:?} and {second:?} both give {field}; choose one with --map {field}={first}",
        file.display()
    )]
    TwoColumns {
        /// The file.
        file: PathBuf,
        /// The field.
        field: &'static str,
        /// One column.
        first: String,
        /// The other.
        second: String,
    },
    /// Zone ids, and no zones to look them up in.
    #[error(
        "{}: column {column:?} holds zone ids; give a CSV of their places with --zones",
        file.display()
    )]
    NoZones {
        /// The file.
        file: PathBuf,
        /// The column.
        column: String,
    },
    /// A column has a type that cannot hold the field.
    #[error("{}: column {column:?} holds {kind}, which cannot be read as {field}", file.display())]
    ColumnType {
        /// The file.
        file: PathBuf,
        /// The column.
        column: String,
        /// Its type.
        kind: String,
        /// The field.
        field: &'static str,
    },
    /// `--map` or another option cannot be followed.
    #[error("{option} {value}: {detail}")]
    Option {
        /// The option, as on the command line.
        option: &'static str,
        /// Its value.
        value: String,
        /// What is wrong with it.
        detail: String,
    },
    /// A field of a strict file (zones, drivers) is wrong.
    #[error("{}: row {row}, column {column:?}: {detail}", file.display())]
    Field {
        /// The file.
        file: PathBuf,
        /// Its line; the header is row 1.
        row: u64,
        /// The column.
        column: String,
        /// What is wrong.
        detail: String,
    },
    /// A row of a strict file is wrong, or one of any file is too long to be a row.
    #[error("{}: row {row}: {detail}", file.display())]
    Row {
        /// The file.
        file: PathBuf,
        /// Its line; the header is row 1.
        row: u64,
        /// What is wrong.
        detail: String,
    },
    /// The dates of a column can be read in several ways, or in none.
    #[error("{}: column {column:?}: {detail}; say which with --date-order mdy, dmy or ymd", file.display())]
    DateOrder {
        /// The file.
        file: PathBuf,
        /// The column.
        column: String,
        /// Which orders are possible, with an example.
        detail: String,
    },
    /// Latitude and longitude stand in each other's column.
    #[error("{}: {detail}", file.display())]
    Swapped {
        /// The file.
        file: PathBuf,
        /// Which columns, by what example, and the `--map` that would help.
        detail: String,
    },
    /// More rows than can be held.
    #[error("there are more than {limit} rows to keep; take fewer with --from and --to")]
    TooManyRows {
        /// The limit.
        limit: usize,
    },
    /// Not one row is usable.
    #[error(
        "no row of {files} is usable: {rows_read} read, {}{hint}",
        counts(rejected)
    )]
    Unusable {
        /// The files.
        files: String,
        /// Rows read.
        rows_read: u64,
        /// All of them, by reason.
        rejected: Vec<(Reason, u64)>,
        /// What could be done, with its leading separator.
        hint: String,
    },
}

fn counts(rejected: &[(Reason, u64)]) -> String {
    let parts: Vec<_> = rejected.iter().map(|(r, n)| format!("{n} {r}")).collect();
    parts.join(", ")
}
