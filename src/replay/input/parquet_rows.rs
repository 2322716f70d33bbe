//! Rows of Parquet: only the columns that are needed, a batch at a time.
//!
//! Assumes flat columns, as every publisher of trip records writes them; columns inside lists are
//! not offered at all.

use std::{
    fs::File,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
};

use parquet::{
    errors::ParquetError,
    file::reader::{FileReader, SerializedFileReader},
    schema::types::ColumnDescriptor,
};

use super::{
    cells::Cell,
    columns::Columns,
    csv_rows::header_text,
    error::InputError,
    fields::{FIELDS, Field},
    parquet_cells::{CellReader, Meaning},
};

/// Rows decoded at once.
const BATCH: usize = 8192;

/// A Parquet file and the columns that could be read from it.
pub(crate) struct ParquetRows {
    file: PathBuf,
    reader: SerializedFileReader<File>,
    /// Columns outside lists: their number in the file and their name.
    flat: Vec<(usize, String)>,
}

impl ParquetRows {
    /// Reads the file's footer.
    ///
    /// # Errors
    /// The file is damaged or cut short.
    pub(crate) fn new(path: &Path, file: File) -> Result<Self, InputError> {
        let reader = guarded(path, || SerializedFileReader::new(file))?;
        let schema = reader.metadata().file_metadata().schema_descr();
        let flat = schema
            .columns()
            .iter()
            .enumerate()
            .filter(|(_, column)| column.max_rep_level() == 0)
            .map(|(i, column)| (i, column.path().string()))
            .collect();
        Ok(Self {
            file: path.into(),
            reader,
            flat,
        })
    }

    /// The names of the columns.
    pub(crate) fn header(&self) -> Vec<String> {
        self.flat
            .iter()
            .map(|(_, name)| header_text(name))
            .collect()
    }

    /// The first of the time columns that holds instants, so that no time zone is applied to it.
    pub(crate) fn utc_column<'c>(&self, columns: &'c Columns) -> Option<&'c str> {
        let is_utc = |field: &Field| {
            let meaning = columns
                .index(*field)
                .map(|i| Meaning::of(&self.descriptor(i)));
            matches!(
                meaning,
                Some(Meaning::Time { utc: true, .. } | Meaning::Int96)
            )
        };
        let field = Field::TIMES.into_iter().find(is_utc)?;
        columns.header(field)
    }

    /// Gives every row's cells to `take`, in the order of [`Field::ALL`], and after each row group
    /// the share of the file that is done to `tell`.
    ///
    /// # Errors
    /// A column's type cannot hold its field, the file is damaged, or `take` refuses.
    pub(crate) fn read(
        &self,
        columns: &Columns,
        take: &mut dyn FnMut(&[Cell<'_>; FIELDS]) -> Result<(), InputError>,
        tell: &dyn Fn(f64),
    ) -> Result<(), InputError> {
        self.check_types(columns)?;
        let groups = self.reader.num_row_groups();
        for number in 0..groups {
            self.check_ranges(number)?;
            let group = guarded(&self.file, || self.reader.get_row_group(number))?;
            let mut readers = Vec::new();
            for field in Field::ALL {
                if let Some(i) = columns.index(field) {
                    let column = self.flat[i].0;
                    let reader = guarded(&self.file, || group.get_column_reader(column))?;
                    readers.push((field, CellReader::new(reader, &self.descriptor(i))));
                }
            }
            let mut left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            while left > 0 {
                let batch = left.min(BATCH);
                for (_, reader) in &mut readers {
                    guarded(&self.file, || reader.fill(batch))?;
                }
                for row in 0..batch {
                    let mut cells = [Cell::Missing; FIELDS];
                    for (field, reader) in &readers {
                        cells[*field as usize] = reader.cell(row);
                    }
                    take(&cells)?;
                }
                left -= batch;
            }
            tell((number + 1) as f64 / groups as f64);
        }
        Ok(())
    }

    fn descriptor(&self, column: usize) -> std::sync::Arc<ColumnDescriptor> {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        schema.column(self.flat[column].0)
    }

    fn check_types(&self, columns: &Columns) -> Result<(), InputError> {
        for field in Field::ALL {
            let Some(i) = columns.index(field) else {
                continue;
            };
            let descriptor = self.descriptor(i);
            let fits = match Meaning::of(&descriptor) {
                Meaning::Plain | Meaning::Decimal { .. } => true,
                Meaning::Days | Meaning::Time { .. } | Meaning::Int96 => {
                    Field::TIMES.contains(&field)
                }
                Meaning::Other => false,
            };
            if !fits {
                return Err(InputError::ColumnType {
                    file: self.file.clone(),
                    column: self.flat[i].1.clone(),
                    kind: describe(&descriptor),
                    field: field.name(),
                });
            }
        }
        Ok(())
    }

    /// Where the bytes of a column lie must be said in positive numbers: the decoder insists.
    fn check_ranges(&self, group: usize) -> Result<(), InputError> {
        let columns = self.reader.metadata().row_group(group).columns();
        let negative = columns.iter().any(|column| {
            let start = column
                .dictionary_page_offset()
                .unwrap_or(column.data_page_offset());
            start < 0 || column.compressed_size() < 0
        });
        if negative || columns.len() <= self.flat.last().map_or(0, |(last, _)| *last) {
            return Err(damaged(&self.file, "its columns lie nowhere"));
        }
        Ok(())
    }
}

/// Runs a step of the decoder, which panics on some kinds of damage instead of saying so.
fn guarded<T>(
    file: &Path,
    step: impl FnOnce() -> Result<T, ParquetError>,
) -> Result<T, InputError> {
    match panic::catch_unwind(AssertUnwindSafe(step)) {
        Ok(done) => done.map_err(|error| damaged(file, &error.to_string())),
        Err(_) => Err(damaged(file, "the Parquet decoder gave up on it")),
    }
}

fn damaged(file: &Path, detail: &str) -> InputError {
    InputError::Damaged {
        file: file.into(),
        detail: header_text(detail),
    }
}

fn describe(column: &ColumnDescriptor) -> String {
    match column.logical_type_ref() {
        Some(logical) => format!("{logical:?}"),
        None => format!("{:?}", column.physical_type()),
    }
}
