//! Values of Parquet columns as cells: what the stored numbers of a column stand for, decoded a
//! batch at a time.

use parquet::{
    basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical},
    column::reader::{ColumnReader, ColumnReaderImpl},
    data_type::{ByteArray, DataType, Int96},
    errors::ParquetError,
    schema::types::ColumnDescriptor,
};

use super::cells::Cell;

const MS_PER_DAY: i64 = 86_400_000;

/// What the stored values of a column stand for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Meaning {
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

impl Meaning {
    /// What a column's type and marks say.
    pub(crate) fn of(column: &ColumnDescriptor) -> Self {
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
pub(crate) struct CellReader {
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
    /// A type of no use here, which no field is given.
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
    pub(crate) fn new(reader: ColumnReader, column: &ColumnDescriptor) -> Self {
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

    /// Decodes the next `rows` rows.
    pub(crate) fn fill(&mut self, rows: usize) -> Result<(), ParquetError> {
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

    /// The cell of a row of the current batch.
    pub(crate) fn cell(&self, row: usize) -> Cell<'_> {
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
