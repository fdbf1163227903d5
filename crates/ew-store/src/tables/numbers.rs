//! The whole numbers among the fields of a struct, without a copy of it: a large run has a hundred
//! million of them.

use crate::table::int;
use serde::de::value::Error;
use serde::ser::{Error as _, Impossible, Serialize, SerializeStruct, Serializer};
use std::borrow::Cow;

/// Gives every whole number among the fields of `of` with its name; those of structs in it as
/// `outer.inner`. What is missing is skipped, and what is no number.
pub(super) fn each_number(of: &impl Serialize, take: &mut dyn FnMut(Cow<'static, str>, i64)) {
    // An error is a list, which is skipped, too.
    let _ = of.serialize(Value { name: None, take });
}

/// A field, or the whole struct.
struct Value<'t> {
    name: Option<Cow<'static, str>>,
    take: &'t mut dyn FnMut(Cow<'static, str>, i64),
}

/// The fields of a struct.
struct Fields<'t> {
    outer: Option<Cow<'static, str>>,
    take: &'t mut dyn FnMut(Cow<'static, str>, i64),
}

impl SerializeStruct for Fields<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        field: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let name = match &self.outer {
            Some(outer) => Cow::Owned(format!("{outer}.{field}")),
            None => Cow::Borrowed(field),
        };
        let _ = value.serialize(Value {
            name: Some(name),
            take: &mut *self.take,
        });
        Ok(())
    }

    fn end(self) -> Result<(), Error> {
        Ok(())
    }
}

impl Value<'_> {
    fn number(self, value: impl TryInto<u64>) -> Result<(), Error> {
        if let (Some(name), Ok(value)) = (self.name, value.try_into()) {
            (self.take)(name, int(value));
        }
        Ok(())
    }
}

fn skipped<T>() -> Result<T, Error> {
    Err(Error::custom("no number"))
}

impl<'t> Serializer for Value<'t> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Impossible<(), Error>;
    type SerializeTuple = Impossible<(), Error>;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = Impossible<(), Error>;
    type SerializeStruct = Fields<'t>;
    type SerializeStructVariant = Impossible<(), Error>;

    fn serialize_i8(self, value: i8) -> Result<(), Error> {
        self.number(value)
    }

    fn serialize_i16(self, value: i16) -> Result<(), Error> {
        self.number(value)
    }

    fn serialize_i32(self, value: i32) -> Result<(), Error> {
        self.number(value)
    }

    fn serialize_i64(self, value: i64) -> Result<(), Error> {
        self.number(value)
    }

    fn serialize_u8(self, value: u8) -> Result<(), Error> {
        self.number(value)
    }

    fn serialize_u16(self, value: u16) -> Result<(), Error> {
        self.number(value)
    }

    fn serialize_u32(self, value: u32) -> Result<(), Error> {
        self.number(value)
    }

    fn serialize_u64(self, value: u64) -> Result<(), Error> {
        self.number(value)
    }

    fn serialize_bool(self, _: bool) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_f32(self, _: f32) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_f64(self, _: f64) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_char(self, _: char) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_str(self, _: &str) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Error> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Error> {
        skipped()
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Fields<'t>, Error> {
        Ok(Fields {
            outer: self.name,
            take: self.take,
        })
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, Error> {
        skipped()
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Error> {
        skipped()
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, Error> {
        skipped()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Error> {
        skipped()
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Error> {
        skipped()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Error> {
        skipped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::telemetry::{Pressure, QdiscCounters, StallCounters};

    fn numbers(of: &impl Serialize) -> Vec<(String, i64)> {
        let mut found = Vec::new();
        each_number(of, &mut |name, value| {
            found.push((name.into_owned(), value));
        });
        found
    }

    #[test]
    fn numbers_have_their_names_and_the_rest_is_skipped() {
        let stalls = StallCounters {
            some_us: 11,
            full_us: None,
        };
        let pressure = Pressure {
            io: Some(stalls),
            ..Pressure::default()
        };
        assert_eq!(numbers(&pressure), [("io.some_us".to_owned(), 11)]);
        let qdisc = QdiscCounters {
            interface: "eth0".into(),
            bytes: u64::MAX,
            ..QdiscCounters::default()
        };
        let found = numbers(&qdisc);
        assert!(found.contains(&("bytes".to_owned(), i64::MAX)));
        assert!(
            !found
                .iter()
                .any(|(name, _)| name == "interface" || name == "root")
        );
        assert_eq!(numbers(&vec![1]), []);
    }
}
