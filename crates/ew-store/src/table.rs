//! A small writer of Parquet tables: a table is a list of columns, a column is a name and a
//! function of a row that gives a value or a list.

use crate::draft::Draft;
use crate::error::StoreError;
use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows buffered until they are written as one row group: bounds memory, and is large enough to
/// compress well.
const ROW_GROUP_ROWS: usize = 64 * 1024;
/// Values of lists buffered at most; a row without lists weighs 1.
const ROW_GROUP_WEIGHT: usize = 1024 * 1024;
/// The levels of a list column (Parquet format, "Nested Types", lists in three levels): the
/// definition level is 0 for a null list, 1 for an empty one, 2 for an element; the repetition
/// level is 0 where a new list begins.
const ELEMENT_DEFINED: i16 = 2;

/// One column of rows of type `R`. Plain functions become columns without nulls, `maybe_` ones
/// columns with.
pub(crate) struct Column<R> {
    name: &'static str,
    about: &'static str,
    values: Values<R>,
}

enum Values<R> {
    Int(fn(&R) -> i64),
    MaybeInt(fn(&R) -> Option<i64>),
    MaybeFloat(fn(&R) -> Option<f64>),
    MaybeInts(fn(&R) -> Option<Vec<i64>>),
    Text(fn(&R) -> String),
    MaybeText(fn(&R) -> Option<String>),
}

/// A column for the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDescription {
    /// Its name in the file.
    pub name: &'static str,
    /// `int64`, `double`, `string` or `list<int64>`.
    pub kind: &'static str,
    /// Whether it has nulls: a null was not measured, or does not apply to the row.
    pub nullable: bool,
    /// Its content.
    pub about: &'static str,
}

impl<R> Column<R> {
    pub(crate) const fn int(
        name: &'static str,
        about: &'static str,
        values: fn(&R) -> i64,
    ) -> Self {
        let values = Values::Int(values);
        Self {
            name,
            about,
            values,
        }
    }

    pub(crate) const fn maybe_int(
        name: &'static str,
        about: &'static str,
        values: fn(&R) -> Option<i64>,
    ) -> Self {
        let values = Values::MaybeInt(values);
        Self {
            name,
            about,
            values,
        }
    }

    pub(crate) const fn maybe_float(
        name: &'static str,
        about: &'static str,
        values: fn(&R) -> Option<f64>,
    ) -> Self {
        let values = Values::MaybeFloat(values);
        Self {
            name,
            about,
            values,
        }
    }

    pub(crate) const fn maybe_ints(
        name: &'static str,
        about: &'static str,
        values: fn(&R) -> Option<Vec<i64>>,
    ) -> Self {
        let values = Values::MaybeInts(values);
        Self {
            name,
            about,
            values,
        }
    }

    pub(crate) const fn text(
        name: &'static str,
        about: &'static str,
        values: fn(&R) -> String,
    ) -> Self {
        let values = Values::Text(values);
        Self {
            name,
            about,
            values,
        }
    }

    pub(crate) const fn maybe_text(
        name: &'static str,
        about: &'static str,
        values: fn(&R) -> Option<String>,
    ) -> Self {
        let values = Values::MaybeText(values);
        Self {
            name,
            about,
            values,
        }
    }

    pub(crate) fn describe(&self) -> ColumnDescription {
        let (physical, nullable) = self.values.shape();
        ColumnDescription {
            name: self.name,
            kind: match physical {
                PhysicalType::INT64 if self.values.is_list() => "list<int64>",
                PhysicalType::INT64 => "int64",
                PhysicalType::DOUBLE => "double",
                _ => "string",
            },
            nullable,
            about: self.about,
        }
    }

    fn field(&self) -> ParquetResult<TypePtr> {
        if self.values.is_list() {
            return list_field(self.name);
        }
        let (physical, nullable) = self.values.shape();
        let text = physical == PhysicalType::BYTE_ARRAY;
        let repetition = match nullable {
            true => Repetition::OPTIONAL,
            false => Repetition::REQUIRED,
        };
        let field = Type::primitive_type_builder(self.name, physical)
            .with_repetition(repetition)
            .with_logical_type(text.then_some(LogicalType::String))
            .build()?;
        Ok(Arc::new(field))
    }
}

impl<R> Values<R> {
    fn shape(&self) -> (PhysicalType, bool) {
        match self {
            Self::Int(_) => (PhysicalType::INT64, false),
            Self::MaybeInt(_) | Self::MaybeInts(_) => (PhysicalType::INT64, true),
            Self::MaybeFloat(_) => (PhysicalType::DOUBLE, true),
            Self::Text(_) => (PhysicalType::BYTE_ARRAY, false),
            Self::MaybeText(_) => (PhysicalType::BYTE_ARRAY, true),
        }
    }

    fn is_list(&self) -> bool {
        matches!(self, Self::MaybeInts(_))
    }

    fn write(&self, rows: &[R], output: &mut SerializedColumnWriter<'_>) -> ParquetResult<()> {
        let bytes = |text: String| ByteArray::from(text.into_bytes());
        match self {
            Self::Int(value) => all::<Int64Type>(output, rows.iter().map(value)),
            Self::MaybeInt(value) => some::<Int64Type>(output, rows.iter().map(value)),
            Self::MaybeInts(value) => lists(output, rows.iter().map(value)),
            Self::MaybeFloat(value) => some::<DoubleType>(output, rows.iter().map(value)),
            Self::Text(value) => all::<ByteArrayType>(output, rows.iter().map(|r| bytes(value(r)))),
            Self::MaybeText(value) => {
                some::<ByteArrayType>(output, rows.iter().map(|r| value(r).map(bytes)))
            }
        }
    }
}

/// Writes rows as they come; nothing exists under the table's name until [`TableWriter::finish`].
pub(crate) struct TableWriter<R: 'static> {
    path: PathBuf,
    columns: &'static [Column<R>],
    output: SerializedFileWriter<Draft>,
    rows: Vec<R>,
    weight: usize,
}

impl<R> TableWriter<R> {
    pub(crate) fn create(
        path: &Path,
        columns: &'static [Column<R>],
        facts: &[(&str, String)],
    ) -> Result<Self, StoreError> {
        let draft = Draft::create(path)?;
        let output = open(draft, columns, facts).map_err(table_error(path))?;
        Ok(Self {
            path: path.to_path_buf(),
            columns,
            output,
            rows: Vec::new(),
            weight: 0,
        })
    }

    pub(crate) fn push(&mut self, row: R) -> Result<(), StoreError> {
        self.push_weighing(row, 1)
    }

    /// A row that contains many values: fewer of its kind are buffered.
    pub(crate) fn push_weighing(&mut self, row: R, weight: usize) -> Result<(), StoreError> {
        self.rows.push(row);
        self.weight = self.weight.saturating_add(weight);
        if self.rows.len() >= ROW_GROUP_ROWS || self.weight >= ROW_GROUP_WEIGHT {
            self.write_group()?;
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<(), StoreError> {
        if !self.rows.is_empty() {
            self.write_group()?;
        }
        let failed = table_error(&self.path);
        self.output.into_inner().map_err(failed)?.publish()
    }

    fn write_group(&mut self) -> Result<(), StoreError> {
        let written = write_group(&mut self.output, self.columns, &self.rows);
        self.rows.clear();
        self.weight = 0;
        written.map_err(table_error(&self.path))
    }
}

fn open<R>(
    draft: Draft,
    columns: &[Column<R>],
    facts: &[(&str, String)],
) -> ParquetResult<SerializedFileWriter<Draft>> {
    let fields = columns
        .iter()
        .map(Column::field)
        .collect::<ParquetResult<_>>()?;
    let schema = Type::group_type_builder("schema")
        .with_fields(fields)
        .build()?;
    let facts = facts
        .iter()
        .map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone()))
        .collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("eastwest ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(facts))
        .build();
    SerializedFileWriter::new(draft, Arc::new(schema), Arc::new(properties))
}

fn write_group<R>(
    output: &mut SerializedFileWriter<Draft>,
    columns: &[Column<R>],
    rows: &[R],
) -> ParquetResult<()> {
    let mut group = output.next_row_group()?;
    for column in columns {
        let missing = || ParquetError::General("fewer columns than the schema".to_owned());
        let mut writer = group.next_column()?.ok_or_else(missing)?;
        column.values.write(rows, &mut writer)?;
        writer.close()?;
    }
    group.close()?;
    Ok(())
}

fn all<T: DataType>(
    output: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = T::T>,
) -> ParquetResult<()> {
    let values: Vec<T::T> = values.collect();
    output.typed::<T>().write_batch(&values, None, None)?;
    Ok(())
}

fn some<T: DataType>(
    output: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = Option<T::T>>,
) -> ParquetResult<()> {
    let mut present = Vec::new();
    let mut levels = Vec::new();
    for value in values {
        levels.push(i16::from(value.is_some()));
        present.extend(value);
    }
    output
        .typed::<T>()
        .write_batch(&present, Some(&levels), None)?;
    Ok(())
}

fn lists(
    output: &mut SerializedColumnWriter<'_>,
    lists: impl Iterator<Item = Option<Vec<i64>>>,
) -> ParquetResult<()> {
    let mut elements = Vec::new();
    let mut defined = Vec::new();
    let mut repeated = Vec::new();
    for list in lists {
        let is_list = i16::from(list.is_some());
        let list = list.unwrap_or_default();
        if list.is_empty() {
            defined.push(is_list);
            repeated.push(0);
        }
        for (at, element) in list.into_iter().enumerate() {
            elements.push(element);
            defined.push(ELEMENT_DEFINED);
            repeated.push(i16::from(at > 0));
        }
    }
    output
        .typed::<Int64Type>()
        .write_batch(&elements, Some(&defined), Some(&repeated))?;
    Ok(())
}

/// `optional group NAME (LIST) { repeated group list { required int64 element } }`.
fn list_field(name: &str) -> ParquetResult<TypePtr> {
    let element = Type::primitive_type_builder("element", PhysicalType::INT64)
        .with_repetition(Repetition::REQUIRED)
        .build()?;
    let list = Type::group_type_builder("list")
        .with_repetition(Repetition::REPEATED)
        .with_fields(vec![Arc::new(element)])
        .build()?;
    let field = Type::group_type_builder(name)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(Some(LogicalType::List))
        .with_converted_type(ConvertedType::LIST)
        .with_fields(vec![Arc::new(list)])
        .build()?;
    Ok(Arc::new(field))
}

fn table_error(path: &Path) -> impl FnOnce(ParquetError) -> StoreError {
    let path = path.to_path_buf();
    move |source| StoreError::Table { path, source }
}

/// Parquet readers differ in their support for unsigned numbers; none of ours reaches 2^63.
pub(crate) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    const COLUMNS: &[Column<u64>] = &[
        Column::int("number", "itself", |n| *n as i64),
        Column::maybe_text("odd", "null for even numbers", |n| {
            (n % 2 == 1).then(|| n.to_string())
        }),
    ];

    #[test]
    fn many_rows_become_several_row_groups_and_all_are_there() {
        let temp_dir = tempfile::TempDir::new().unwrap();
        let path = temp_dir.path().join("numbers.parquet");
        let rows = ROW_GROUP_ROWS as u64 + 3;
        let mut table = TableWriter::create(&path, COLUMNS, &[("about", "test".into())]).unwrap();
        for number in 0..rows {
            table.push(number).unwrap();
        }
        assert!(!path.exists(), "nothing under its name before the end");
        table.finish().unwrap();
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        assert_eq!(reader.num_row_groups(), 2);
        let mut count = 0;
        for row in reader.get_row_iter(None).unwrap() {
            let row = row.unwrap();
            assert_eq!(row.get_long(0).unwrap(), count);
            let odd = row.get_string(1).ok().map(String::as_str);
            assert_eq!(odd, (count % 2 == 1).then(|| count.to_string()).as_deref());
            count += 1;
        }
        assert_eq!(count, rows as i64);
    }

    #[test]
    fn lists_are_read_back_with_their_nulls() {
        const LISTS: &[Column<u64>] = &[Column::maybe_ints("up_to", "null for 0", |n| {
            (*n > 0).then(|| (1..*n as i64).collect())
        })];
        let temp_dir = tempfile::TempDir::new().unwrap();
        let path = temp_dir.path().join("lists.parquet");
        let mut table = TableWriter::create(&path, LISTS, &[]).unwrap();
        for number in [0, 1, 4, 0, 2] {
            table.push(number).unwrap();
        }
        table.finish().unwrap();
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        let read: Vec<Option<Vec<i64>>> = reader
            .get_row_iter(None)
            .unwrap()
            .map(|row| {
                let row = row.unwrap();
                let list = row.get_list(0).ok()?;
                Some(
                    list.elements()
                        .iter()
                        .map(|e| match e {
                            parquet::record::Field::Long(value) => *value,
                            other => panic!("{other}"),
                        })
                        .collect(),
                )
            })
            .collect();
        let expected = [None, Some(vec![]), Some(vec![1, 2, 3]), None, Some(vec![1])];
        assert_eq!(read, expected);
    }

    #[test]
    fn heavy_rows_are_written_earlier() {
        let temp_dir = tempfile::TempDir::new().unwrap();
        let path = temp_dir.path().join("numbers.parquet");
        let mut table = TableWriter::create(&path, COLUMNS, &[]).unwrap();
        for number in 0..4 {
            table.push_weighing(number, ROW_GROUP_WEIGHT / 2).unwrap();
        }
        table.finish().unwrap();
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        assert_eq!(reader.num_row_groups(), 2);
    }

    #[test]
    fn a_table_that_is_given_up_leaves_nothing() {
        let temp_dir = tempfile::TempDir::new().unwrap();
        let path = temp_dir.path().join("numbers.parquet");
        let mut table = TableWriter::create(&path, COLUMNS, &[]).unwrap();
        table.push(1).unwrap();
        drop(table);
        assert_eq!(std::fs::read_dir(temp_dir.path()).unwrap().count(), 0);
    }
}
