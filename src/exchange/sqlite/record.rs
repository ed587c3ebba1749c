//! Record format: values of one row.

use super::Value;

/// Text encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    Utf16Little,
    Utf16Big,
}

impl Encoding {
    /// Encoding from the last byte of the header field.
    pub(super) fn of(byte: u8) -> Self {
        match byte {
            2 => Self::Utf16Little,
            3 => Self::Utf16Big,
            _ => Self::Utf8,
        }
    }

    fn decode(self, bytes: &[u8]) -> String {
        let pairs = |read: fn([u8; 2]) -> u16| -> String {
            let units: Vec<u16> = bytes.chunks_exact(2).map(|b| read([b[0], b[1]])).collect();
            String::from_utf16_lossy(&units)
        };
        match self {
            Self::Utf8 => String::from_utf8_lossy(bytes).into_owned(),
            Self::Utf16Little => pairs(u16::from_le_bytes),
            Self::Utf16Big => pairs(u16::from_be_bytes),
        }
    }
}

/// Varint of one to nine bytes, and the position after it.
#[expect(
    clippy::cast_possible_wrap,
    reason = "the format says so: two's complement"
)]
pub(super) fn varint(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    let mut number: u64 = 0;
    for i in 0..8 {
        let byte = *bytes.get(at + i)?;
        number = number << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            return Some((number as i64, at + i + 1));
        }
    }
    let last = *bytes.get(at + 8)?;
    Some(((number << 8 | u64::from(last)) as i64, at + 9))
}

/// Values of a record; `None` if it is invalid.
pub(super) fn values(record: &[u8], encoding: Encoding) -> Option<Vec<Value>> {
    let (header, mut at) = varint(record, 0)?;
    let header = usize::try_from(header)
        .ok()
        .filter(|n| *n <= record.len())?;
    let mut from = header;
    let mut values = Vec::new();
    while at < header {
        let (kind, next) = varint(record, at)?;
        at = next;
        let size = size(kind)?;
        let bytes = record.get(from..from.checked_add(size)?)?;
        from += size;
        values.push(match kind {
            0 => Value::Null,
            1..=6 => Value::Integer(integer(bytes)),
            7 => Value::Real(f64::from_be_bytes(bytes.try_into().ok()?)),
            8 => Value::Integer(0),
            9 => Value::Integer(1),
            kind if kind % 2 == 0 => Value::Blob(bytes.to_vec()),
            _ => Value::Text(encoding.decode(bytes)),
        });
    }
    Some(values)
}

/// Size in bytes of a value with this serial type; `None` if the type is invalid.
fn size(kind: i64) -> Option<usize> {
    match kind {
        0 | 8 | 9 => Some(0),
        1..=4 => usize::try_from(kind).ok(),
        5 => Some(6),
        6 | 7 => Some(8),
        kind if kind >= 12 => usize::try_from((kind - 12) / 2).ok(),
        _ => None,
    }
}

/// Big-endian signed integer.
fn integer(bytes: &[u8]) -> i64 {
    let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    let start = if negative { -1 } else { 0 };
    bytes
        .iter()
        .fold(start, |number: i64, byte| number << 8 | i64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_are_read() {
        let check = |bytes: &[u8], expected| assert_eq!(varint(bytes, 0), expected, "{bytes:?}");
        check(&[0x7f], Some((127, 1)));
        check(&[0x81, 0x00], Some((128, 2)));
        check(&[0xff; 9], Some((-1, 9)));
        check(&[0x81], None);
        check(&[], None);
        assert_eq!(integer(&[0xff, 0xfe]), -2);
        assert_eq!(integer(&[0x01, 0x00]), 256);
    }

    #[test]
    fn a_record_is_its_values() {
        let record = [
            &[7, 0, 1, 9, 21, 14, 7],
            &[0xff][..],
            b"text",
            &[5],
            &1.5_f64.to_be_bytes(),
        ]
        .concat();
        let found = values(&record, Encoding::Utf8).unwrap();
        assert_eq!(
            found,
            [
                Value::Null,
                Value::Integer(-1),
                Value::Integer(1),
                Value::Text("text".to_owned()),
                Value::Blob(vec![5]),
                Value::Real(1.5),
            ]
        );
        assert_eq!(values(&record[..9], Encoding::Utf8), None);
        assert_eq!(Encoding::Utf16Little.decode(&[0xe9, 0]), "é");
    }
}
