//! As much of protobuf's wire format as a handful of calls need: varints and length-delimited
//! fields.

/// A field's value. Fixed-width ones occur in no message that is read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    pub(crate) fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Bytes(_) => None,
        }
    }

    pub(crate) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Number(_) => None,
        }
    }
}

/// All fields in order, by number; ends where the message is malformed.
pub(crate) fn fields(mut rest: &[u8]) -> impl Iterator<Item = (u64, Field<'_>)> {
    std::iter::from_fn(move || {
        let (key, after) = varint(rest)?;
        let (field, after) = match key & 7 {
            0 => varint(after).map(|(number, after)| (Field::Number(number), after))?,
            1 => (Field::Bytes(after.get(..8)?), &after[8..]),
            2 => delimited(after).map(|(bytes, after)| (Field::Bytes(bytes), after))?,
            5 => (Field::Bytes(after.get(..4)?), &after[4..]),
            _ => return None,
        };
        rest = after;
        Some((key >> 3, field))
    })
}

/// The first field of a number.
pub(crate) fn first(message: &[u8], number: u64) -> Option<Field<'_>> {
    fields(message)
        .find(|(found, _)| *found == number)
        .map(|(_, field)| field)
}

/// The bytes that a length prefix announces, and the rest.
pub(crate) fn delimited(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = varint(bytes)?;
    rest.split_at_checked(usize::try_from(length).ok()?)
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (at, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f).checked_shl(7 * at as u32)?;
        if byte & 0x80 == 0 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A message made of the fields that `fill` puts in.
pub(crate) fn message(fill: impl FnOnce(&mut Message)) -> Vec<u8> {
    let mut message = Message(Vec::new());
    fill(&mut message);
    message.0
}

/// A message being made.
pub(crate) struct Message(Vec<u8>);

impl Message {
    pub(crate) fn number(&mut self, field: u64, value: u64) {
        put_varint(&mut self.0, field << 3);
        put_varint(&mut self.0, value);
    }

    pub(crate) fn bytes(&mut self, field: u64, value: &[u8]) {
        put_varint(&mut self.0, field << 3 | 2);
        put_varint(&mut self.0, value.len() as u64);
        self.0.extend_from_slice(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_read() {
        let bytes = message(|m| {
            m.number(3, 300);
            m.bytes(16, b"abc");
            m.number(1, u64::MAX);
        });
        assert_eq!(first(&bytes, 3), Some(Field::Number(300)));
        assert_eq!(first(&bytes, 16), Some(Field::Bytes(b"abc")));
        assert_eq!(first(&bytes, 1), Some(Field::Number(u64::MAX)));
        assert_eq!(first(&bytes, 2), None);
    }

    proptest! {
        #[test]
        fn anything_else_ends(bytes: Vec<u8>) {
            prop_assert!(fields(&bytes).count() <= bytes.len());
        }
    }
}
