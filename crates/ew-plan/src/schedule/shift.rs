//! Racks in a circle, each sending to the one so many positions on: every rack sends to one rack
//! and receives from one, so that what leaves a rack and what enters one is the sum of one pair's
//! flows, whether the number of racks is odd or even.

use super::draw::Draw;
use super::matching::rotated;

/// The shifts of a circle of `count` racks, in random order; none of them leaves a rack where it
/// is.
pub(crate) fn rack_offsets(count: usize, draw: &mut Draw) -> Vec<usize> {
    draw.shuffled(&(1..count).collect::<Vec<_>>())
}

/// Pairs (sender, receiver) of each rack with the one `offset` positions on, as many as the smaller
/// of the two has members, each in one pair per direction. Every `turn` pairs others, and moves the
/// members of a larger rack that take part.
pub(crate) fn paired<T: Copy>(racks: &[Vec<T>], offset: usize, turn: usize) -> Vec<(T, T)> {
    let mut pairs = Vec::new();
    for (from, senders) in racks.iter().enumerate() {
        let receivers = &racks[(from + offset) % racks.len()];
        let count = senders.len().min(receivers.len());
        let senders = rotated(senders, turn * count, count);
        let receivers = rotated(receivers, turn * count + turn, count);
        pairs.extend(senders.into_iter().zip(receivers));
    }
    pairs
}
