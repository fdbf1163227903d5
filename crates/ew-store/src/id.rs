//! Names of runs and plans.

use ew_model::Plan;
use jiff::Timestamp;

/// How much of a scenario's name a run's name takes.
const NAME_CHARACTERS: usize = 40;

/// `<utc time>-<scenario>-<six random hexadecimal digits>`, for example
/// `20260102T030405Z-qualify-1f9c3a`: sorts by time and is a safe directory name whatever the
/// scenario is called.
#[must_use]
pub fn make_run_id(unix_ns: u64, scenario: &str) -> String {
    let time = Timestamp::from_nanosecond(i128::from(unix_ns)).unwrap_or(Timestamp::UNIX_EPOCH);
    let time = time.strftime("%Y%m%dT%H%M%SZ");
    format!("{time}-{}-{}", safe_name(scenario), suffix(unix_ns))
}

/// The same name with another random end.
pub(crate) fn renamed(id: &str, unix_ns: u64) -> String {
    let stem = id.rsplit_once('-').map_or(id, |(stem, _)| stem);
    format!("{stem}-{}", suffix(unix_ns))
}

/// 64-bit FNV-1a (draft-eastlake-fnv) of the plan's JSON, as 16 hexadecimal digits: equal plans
/// have equal hashes.
#[must_use]
pub fn plan_hash(plan: &Plan) -> String {
    // A plan has only string keys, so that it always has a JSON form.
    let json = serde_json::to_vec(plan).unwrap_or_default();
    format!("{:016x}", fnv1a(&json))
}

fn fnv1a(bytes: &[u8]) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(OFFSET_BASIS, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(PRIME)
    })
}

fn safe_name(scenario: &str) -> String {
    let name: String = scenario
        .chars()
        .take(NAME_CHARACTERS)
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => c,
            _ => '-',
        })
        .collect();
    match name.trim_matches('-') {
        "" => "run".to_owned(),
        name => name.to_owned(),
    }
}

/// Random; the clock's last digits where the kernel has no random numbers, as the directory's
/// creation decides who was first.
fn suffix(unix_ns: u64) -> String {
    let mut random = [0; 3];
    if getrandom::fill(&mut random).is_err() {
        random.copy_from_slice(&unix_ns.to_le_bytes()[..3]);
    }
    format!("{:02x}{:02x}{:02x}", random[0], random[1], random[2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_name_says_when_and_what() {
        let id = make_run_id(1_767_323_045_999_999_999, "cross rack/2");
        assert!(id.starts_with("20260102T030405Z-cross-rack-2-"), "{id}");
        assert!(make_run_id(0, "../..").starts_with("19700101T000000Z-run-"));
        assert_eq!(id.len(), renamed(&id, 7).len());
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        // Published test values of the 64-bit function.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    proptest! {
        #[test]
        fn any_name_is_one_plain_path_component(time in any::<u64>(), scenario in ".*") {
            let id = make_run_id(time, &scenario);
            prop_assert!(id.len() <= 16 + 1 + NAME_CHARACTERS + 1 + 6);
            prop_assert!(id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
        }
    }
}
