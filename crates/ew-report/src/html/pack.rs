//! How data for the page's script is packed.

use crate::figures::stage_name;
use ew_model::Analysis;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

/// A stage of the run, as the script marks it.
#[derive(Serialize)]
pub(super) struct Stage {
    name: String,
    /// Begin and end in seconds.
    span: Option<[f64; 2]>,
}

/// All stages, in their order.
pub(super) fn stages(analysis: &Analysis) -> Vec<Stage> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let stages = analysis.stages.iter().map(|stage| Stage {
        name: stage_name(stage),
        span: stage.span_ns.map(|(from, to)| [seconds(from), seconds(to)]),
    });
    stages.collect()
}

/// JSON for a `<script type="application/json">`; `<`, `>` and `&` are escaped, so that nothing in
/// it ends the element.
pub(super) fn script_json<T: Serialize>(document: &T) -> Result<String, serde_json::Error> {
    let json = serde_json::to_string(document)?;
    Ok(json
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026"))
}

/// JSON that is unpacked when it is asked for: gzip (RFC 1952) in base64.
pub(super) fn packed_json<T: Serialize>(document: &T) -> Result<String, serde_json::Error> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    serde_json::to_writer(&mut packer, document)?;
    let bytes = packer.finish().map_err(serde_json::Error::io)?;
    Ok(base64(&bytes))
}

/// RFC 4648 section 4.
pub(super) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            if i <= chunk.len() {
                text.push(char::from(ALPHABET[(group >> (18 - 6 * i) & 63) as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

/// Unsigned LEB128, as in DWARF.
pub(super) fn leb128(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_in_rfc_4648_section_10() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, coded) in vectors {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn leb128_as_in_dwarf() {
        let mut bytes = Vec::new();
        leb128(&mut bytes, 2);
        leb128(&mut bytes, 624_485);
        assert_eq!(bytes, [2, 0xe5, 0x8e, 0x26]);
    }
}
