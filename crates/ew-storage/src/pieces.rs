//! Reads of any size from a stream that brings pieces of its own size.

use crate::error::StorageError;
use bytes::Bytes;

/// What came with the stream's last piece and is not read yet.
#[derive(Default)]
pub(crate) struct Pieces {
    pending: Bytes,
}

impl Pieces {
    /// Fills `bytes` from the front and returns how many; fewer only at the stream's end. `next`
    /// waits for the next piece, `None` at the end.
    ///
    /// # Errors
    /// Those of `next`.
    pub(crate) fn fill(
        &mut self,
        bytes: &mut [u8],
        next: impl FnMut() -> Result<Option<Bytes>, StorageError>,
    ) -> Result<usize, StorageError> {
        let mut done = 0;
        self.take(bytes.len(), next, |piece| {
            bytes[done..done + piece.len()].copy_from_slice(piece);
            done += piece.len();
        })
    }

    /// As [`Pieces::fill`], without copying them anywhere.
    ///
    /// # Errors
    /// Those of `next`.
    pub(crate) fn discard(
        &mut self,
        length: usize,
        next: impl FnMut() -> Result<Option<Bytes>, StorageError>,
    ) -> Result<usize, StorageError> {
        self.take(length, next, |_| {})
    }

    fn take(
        &mut self,
        length: usize,
        mut next: impl FnMut() -> Result<Option<Bytes>, StorageError>,
        mut use_piece: impl FnMut(&[u8]),
    ) -> Result<usize, StorageError> {
        let mut done = 0;
        while done < length {
            if self.pending.is_empty() {
                match next()? {
                    Some(piece) => self.pending = piece,
                    None => break,
                }
            }
            let piece = self.pending.len().min(length - done);
            use_piece(&self.pending.split_to(piece));
            done += piece;
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_cross_the_pieces_and_end_with_them() {
        let mut stream = [&b"abc"[..], b"", b"defgh"].into_iter();
        let mut next = || Ok(stream.next().map(Bytes::copy_from_slice));
        let (mut pieces, mut bytes) = (Pieces::default(), [0; 4]);
        assert_eq!(pieces.discard(1, &mut next).unwrap(), 1);
        assert_eq!(pieces.fill(&mut bytes, &mut next).unwrap(), 4);
        assert_eq!(&bytes, b"bcde");
        assert_eq!(pieces.fill(&mut bytes, &mut next).unwrap(), 3);
        assert_eq!(&bytes[..3], b"fgh");
        assert_eq!(pieces.fill(&mut bytes, &mut next).unwrap(), 0);
    }
}
