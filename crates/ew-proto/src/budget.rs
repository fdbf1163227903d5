//! What one message may take in memory, whatever it announces.
//!
//! A byte on the wire can become kilobytes in memory: a struct of absent options, a list of
//! empty texts. The adapter below lets serde's own traffic pass and charges every element of a
//! sequence or map, and every struct, with its size in memory against a budget that the caller
//! sets.

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use std::cell::Cell;
use std::fmt;

/// Elements of a list that are reserved ahead.
const MAX_RESERVED: usize = 4;

/// Memory that a message may still take.
pub(crate) struct Budget {
    left_bytes: Cell<usize>,
    is_spent: Cell<bool>,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            left_bytes: Cell::new(bytes),
            is_spent: Cell::new(false),
        }
    }

    /// Whether more was asked for than there was.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_spent.get()
    }

    fn charge<T, E: Error>(&self) -> Result<(), E> {
        let size_bytes = size_of::<T>();
        let left_bytes = self.left_bytes.get();
        if size_bytes > left_bytes {
            self.is_spent.set(true);
            return Err(E::custom("it takes too much memory for its length"));
        }
        self.left_bytes.set(left_bytes - size_bytes);
        Ok(())
    }
}

/// Serde's deserializers, visitors, seeds and accesses alike, each passing the budget on.
pub(crate) struct Charged<'b, T> {
    inner: T,
    budget: &'b Budget,
    /// Whether this is a list or map of a length that the peer chose, not a tuple or a struct's
    /// fields.
    is_open_ended: bool,
}

impl<'b, T> Charged<'b, T> {
    pub(crate) fn new(inner: T, budget: &'b Budget) -> Self {
        Self {
            inner,
            budget,
            is_open_ended: false,
        }
    }

    fn with<U>(&self, inner: U) -> Charged<'b, U> {
        Charged::new(inner, self.budget)
    }

    fn open_ended<U>(budget: &'b Budget, inner: U) -> Charged<'b, U> {
        Charged {
            is_open_ended: true,
            ..Charged::new(inner, budget)
        }
    }
}

macro_rules! pass_deserialize {
    ($($method:ident($($name:ident: $kind:ty),*);)*) => {
        $(fn $method<V: Visitor<'de>>(self, $($name: $kind,)* visitor: V) -> Result<V::Value, D::Error> {
            let visitor = self.with(visitor);
            self.inner.$method($($name,)* visitor)
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Charged<'_, D> {
    type Error = D::Error;

    pass_deserialize! {
        deserialize_any();
        deserialize_bool();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_i128();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_u128();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_option();
        deserialize_unit();
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier();
        deserialize_ignored_any();
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = Self::open_ended(self.budget, visitor);
        self.inner.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = Self::open_ended(self.budget, visitor);
        self.inner.deserialize_map(visitor)
    }

    /// Charged, because it may be in a box, which nothing else sees.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.budget.charge::<V::Value, D::Error>()?;
        let visitor = self.with(visitor);
        self.inner.deserialize_struct(name, fields, visitor)
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

macro_rules! pass_visit {
    ($($method:ident: $kind:ty;)*) => {
        $(fn $method<E: Error>(self, value: $kind) -> Result<V::Value, E> {
            self.inner.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Charged<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    pass_visit! {
        visit_bool: bool;
        visit_i8: i8;
        visit_i16: i16;
        visit_i32: i32;
        visit_i64: i64;
        visit_i128: i128;
        visit_u8: u8;
        visit_u16: u16;
        visit_u32: u32;
        visit_u64: u64;
        visit_u128: u128;
        visit_f32: f32;
        visit_f64: f64;
        visit_char: char;
        visit_str: &str;
        visit_borrowed_str: &'de str;
        visit_string: String;
        visit_bytes: &[u8];
        visit_borrowed_bytes: &'de [u8];
        visit_byte_buf: Vec<u8>;
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let inner = self.with(inner);
        self.inner.visit_some(inner)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let inner = self.with(inner);
        self.inner.visit_newtype_struct(inner)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(Charged {
            inner,
            budget: self.budget,
            is_open_ended: self.is_open_ended,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(Charged {
            inner,
            budget: self.budget,
            is_open_ended: self.is_open_ended,
        })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        let inner = self.with(inner);
        self.inner.visit_enum(inner)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Charged<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        let inner = self.with(inner);
        self.inner.deserialize(inner)
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Charged<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let seed = self.with(seed);
        let element = self.inner.next_element_seed(seed)?;
        if self.is_open_ended && element.is_some() {
            self.budget.charge::<S::Value, A::Error>()?;
        }
        Ok(element)
    }

    /// Little is reserved on the peer's word, which is not charged: lists grow as their elements
    /// come.
    fn size_hint(&self) -> Option<usize> {
        let announced = self.inner.size_hint()?;
        match self.is_open_ended {
            true => Some(announced.min(MAX_RESERVED)),
            false => Some(announced),
        }
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Charged<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let seed = self.with(seed);
        let key = self.inner.next_key_seed(seed)?;
        if self.is_open_ended && key.is_some() {
            self.budget.charge::<S::Value, A::Error>()?;
        }
        Ok(key)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        if self.is_open_ended {
            self.budget.charge::<S::Value, A::Error>()?;
        }
        let seed = self.with(seed);
        self.inner.next_value_seed(seed)
    }
}

impl<'b, 'de, A: EnumAccess<'de>> EnumAccess<'de> for Charged<'b, A> {
    type Error = A::Error;
    type Variant = Charged<'b, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let seed = self.with(seed);
        let (value, variant) = self.inner.variant_seed(seed)?;
        Ok((value, Charged::new(variant, self.budget)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Charged<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        let seed = self.with(seed);
        self.inner.newtype_variant_seed(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        let visitor = self.with(visitor);
        self.inner.tuple_variant(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let visitor = self.with(visitor);
        self.inner.struct_variant(fields, visitor)
    }
}
