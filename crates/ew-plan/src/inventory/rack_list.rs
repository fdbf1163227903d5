//! `--racks 'r1=n[1-4],r2=n[5-8]'`: racks written out.

use super::inventory_error::InventoryError;

/// A rack and the node set of its hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InlineRack {
    pub(super) name: String,
    pub(super) set: String,
}

/// The racks of a text in which a name is before `=`; a set without a name belongs to the rack
/// before it. `None` when there is no `=`: then the text names groups.
///
/// # Errors
/// [`InventoryError::InlineRack`] when the text does not begin with a name, or a rack has none or
/// no hosts.
pub(super) fn parse_racks(text: &str) -> Result<Option<Vec<InlineRack>>, InventoryError> {
    if !text.contains('=') {
        return Ok(None);
    }
    let wrong = |problem: &str, part: &str| {
        Err(InventoryError::InlineRack {
            part: part.to_owned(),
            problem: problem.to_owned(),
        })
    };
    let mut racks: Vec<InlineRack> = Vec::new();
    for part in split_outside_brackets(text) {
        match (part.split_once('='), racks.last_mut()) {
            (Some((name, set)), _) => {
                let (name, set) = (name.trim(), set.trim());
                let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
                if name.is_empty() || !name.chars().all(allowed) {
                    return wrong("that is no name of a rack", part);
                }
                if set.is_empty() {
                    return wrong("the rack has no hosts", part);
                }
                let (name, set) = (name.to_owned(), set.to_owned());
                racks.push(InlineRack { name, set });
            }
            (None, Some(rack)) => {
                rack.set.push(',');
                rack.set.push_str(part.trim());
            }
            (None, None) => return wrong("no rack is named before it", part),
        }
    }
    Ok(Some(racks))
}

/// At commas that no bracket encloses.
fn split_outside_brackets(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut is_inside) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            '[' => is_inside = true,
            ']' => is_inside = false,
            ',' if !is_inside => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_follow_their_name() {
        let racks = parse_racks("r1=n[1,3],n9 , r2=@x!n7").unwrap().unwrap();
        let found: Vec<_> = racks.iter().map(|r| (&*r.name, &*r.set)).collect();
        assert_eq!(found, [("r1", "n[1,3],n9"), ("r2", "@x!n7")]);
        assert_eq!(parse_racks("@r[1-2]"), Ok(None));
        for wrong in ["n1,r1=n2", "=n1", "r1=", "r[1-2]=n[1-4]", "r1=n1,r 2=n2"] {
            assert!(parse_racks(wrong).is_err(), "{wrong}");
        }
    }
}
