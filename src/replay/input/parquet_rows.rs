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
    basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical},
    column::reader::{ColumnReader, ColumnReaderImpl},
    data_type::{ByteArray, DataType, Int96},
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
};

/// Rows decoded at once.
const BATCH: usize = 8192;

const MS_PER_DAY: i64 = 86_400_000;

/// A Parquet file and the columns that could be read from it.
pub(crate) struct ParquetRows {
    file: PathBuf,
    reader: SerializedFileReader<File>,
    /// Columns outside lists: their number in the file and their name.
    flat: Vec<(usize, String)>,
}

/// What the stored values of a column stand for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Meaning {
    /// Numbers or text.
    Plain,
    /// Whole numbers of a decimal fraction's last digit.
    Decimal { unit: f64 },
    /// Days since 1970-01-01.
    Days,
    /// A time in fractions of a second: instants (UTC) or a wall clock.
    Time { per_second: i64, utc: bool },
    /// The 96-bit times of old writers, which are instants.
    Int96,
    /// Anything else.
    Other,
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

impl Meaning {
    fn of(column: &ColumnDescriptor) -> Self {
        let physical = column.physical_type();
        match (column.logical_type_ref(), column.converted_type()) {
            (Some(LogicalType::Timestamp(time)), _) if physical == Physical::INT64 => Self::Time {
                per_second: match time.unit {
                    TimeUnit::MILLIS => 1_000,
                    TimeUnit::MICROS => 1_000_000,
                    TimeUnit::NANOS => 1_000_000_000,
                },
                utc: time.is_adjusted_to_u_t_c,
            },
            (Some(LogicalType::Date), _) | (None, ConvertedType::DATE)
                if physical == Physical::INT32 =>
            {
                Self::Days
            }
            // By the format's rules the older marks mean instants.
            (None, ConvertedType::TIMESTAMP_MILLIS) if physical == Physical::INT64 => Self::Time {
                per_second: 1_000,
                utc: true,
            },
            (None, ConvertedType::TIMESTAMP_MICROS) if physical == Physical::INT64 => Self::Time {
                per_second: 1_000_000,
                utc: true,
            },
            (Some(LogicalType::Decimal(_)), _) | (None, ConvertedType::DECIMAL)
                if matches!(physical, Physical::INT32 | Physical::INT64) =>
            {
                Self::Decimal {
                    unit: libm::pow(10.0, -f64::from(column.type_scale())),
                }
            }
            (Some(LogicalType::Time(_) | LogicalType::Decimal(_)), _) => Self::Other,
            _ => match physical {
                Physical::INT96 => Self::Int96,
                Physical::BOOLEAN | Physical::FIXED_LEN_BYTE_ARRAY => Self::Other,
                _ => Self::Plain,
            },
        }
    }
}

/// One column of one row group, a batch at a time.
struct CellReader {
    meaning: Meaning,
    /// The definition level at which a value is present; 0 when it always is.
    present_at: i16,
    levels: Vec<i16>,
    /// For each row of the batch, where its value is among `values`.
    slots: Vec<Option<u32>>,
    values: Values,
}

/// The decoder of a column and the values of its current batch.
enum Values {
    I32(Decoder<parquet::data_type::Int32Type>),
    I64(Decoder<parquet::data_type::Int64Type>),
    F32(Decoder<parquet::data_type::FloatType>),
    F64(Decoder<parquet::data_type::DoubleType>),
    Text(Decoder<parquet::data_type::ByteArrayType>),
    Int96(Decoder<parquet::data_type::Int96Type>),
    /// A type that [`ParquetRows::check_types`] let no field have.
    Unread,
}

struct Decoder<T: DataType> {
    reader: ColumnReaderImpl<T>,
    values: Vec<T::T>,
}

impl<T: DataType> Decoder<T> {
    fn new(reader: ColumnReaderImpl<T>) -> Self {
        Self {
            reader,
            values: Vec::new(),
        }
    }

    /// Decodes exactly `rows` rows.
    fn fill(&mut self, rows: usize, levels: &mut Vec<i16>) -> Result<(), ParquetError> {
        self.values.clear();
        levels.clear();
        let mut done = 0;
        while done < rows {
            let (records, _, _) =
                self.reader
                    .read_records(rows - done, Some(levels), None, &mut self.values)?;
            if records == 0 {
                return Err(ParquetError::EOF(format!(
                    "a column ends {} rows before its row group",
                    rows - done
                )));
            }
            done += records;
        }
        Ok(())
    }
}

impl CellReader {
    fn new(reader: ColumnReader, column: &ColumnDescriptor) -> Self {
        let values = match reader {
            ColumnReader::Int32ColumnReader(reader) => Values::I32(Decoder::new(reader)),
            ColumnReader::Int64ColumnReader(reader) => Values::I64(Decoder::new(reader)),
            ColumnReader::FloatColumnReader(reader) => Values::F32(Decoder::new(reader)),
            ColumnReader::DoubleColumnReader(reader) => Values::F64(Decoder::new(reader)),
            ColumnReader::ByteArrayColumnReader(reader) => Values::Text(Decoder::new(reader)),
            ColumnReader::Int96ColumnReader(reader) => Values::Int96(Decoder::new(reader)),
            ColumnReader::BoolColumnReader(_) | ColumnReader::FixedLenByteArrayColumnReader(_) => {
                Values::Unread
            }
        };
        Self {
            meaning: Meaning::of(column),
            present_at: column.max_def_level(),
            levels: Vec::new(),
            slots: Vec::new(),
            values,
        }
    }

    fn fill(&mut self, rows: usize) -> Result<(), ParquetError> {
        let levels = &mut self.levels;
        let values = match &mut self.values {
            Values::I32(decoder) => decoder.fill(rows, levels).map(|()| decoder.values.len()),
            Values::I64(decoder) => decoder.fill(rows, levels).map(|()| decoder.values.len()),
            Values::F32(decoder) => decoder.fill(rows, levels).map(|()| decoder.values.len()),
            Values::F64(decoder) => decoder.fill(rows, levels).map(|()| decoder.values.len()),
            Values::Text(decoder) => decoder.fill(rows, levels).map(|()| decoder.values.len()),
            Values::Int96(decoder) => decoder.fill(rows, levels).map(|()| decoder.values.len()),
            Values::Unread => Ok(0),
        }?;
        self.slots.clear();
        let mut next = 0_u32;
        for row in 0..rows {
            let present = self.present_at == 0
                || self
                    .levels
                    .get(row)
                    .is_some_and(|&level| level == self.present_at);
            self.slots.push(present.then_some(next));
            next += u32::from(present);
        }
        if next as usize > values {
            return Err(ParquetError::EOF(
                "a column has fewer values than it says".into(),
            ));
        }
        Ok(())
    }

    fn cell(&self, row: usize) -> Cell<'_> {
        let Some(slot) = self.slots[row] else {
            return Cell::Missing;
        };
        let slot = slot as usize;
        match &self.values {
            Values::I32(decoder) => self.meaning.whole(i64::from(decoder.values[slot])),
            Values::I64(decoder) => self.meaning.whole(decoder.values[slot]),
            Values::F32(decoder) => Cell::Float(f64::from(decoder.values[slot])),
            Values::F64(decoder) => Cell::Float(decoder.values[slot]),
            Values::Text(decoder) => text(&decoder.values[slot]),
            Values::Int96(decoder) => instant(&decoder.values[slot]),
            Values::Unread => Cell::Missing,
        }
    }
}

impl Meaning {
    fn whole(self, value: i64) -> Cell<'static> {
        match self {
            Self::Decimal { unit } => Cell::Float(value as f64 * unit),
            Self::Days => Cell::WallMs(value.saturating_mul(MS_PER_DAY)),
            Self::Time { per_second, utc } => {
                let ms = value.div_euclid(per_second / 1_000);
                if utc {
                    Cell::UnixMs(ms)
                } else {
                    Cell::WallMs(ms)
                }
            }
            Self::Plain | Self::Int96 | Self::Other => Cell::Int(value),
        }
    }
}

fn text(value: &ByteArray) -> Cell<'_> {
    if value.is_empty() {
        Cell::Missing
    } else {
        Cell::Text(value.data())
    }
}

fn instant(value: &Int96) -> Cell<'static> {
    Cell::UnixMs(value.to_millis())
}
