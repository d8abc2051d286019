//! Room for pieces of files, used again once nobody needs what was in it.
//!
//! A piece is lent to the connection that sends it, and comes back when the last of its bytes has been acknowledged: room is
//! neither allocated nor cleared for each.

use std::{
    io,
    sync::{Arc, Mutex},
};

use quic_transport::Bytes;

use crate::limits::{FILE_CHUNK, SPARE_CHUNKS};

/// The room that isn't in use. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Chunks(Arc<Mutex<Vec<Vec<u8>>>>);

/// Room that is in use, with bytes at its front.
struct Chunk {
    room: Vec<u8>,
    length: usize,
    home: Chunks,
}

impl Chunks {
    /// Has `read` fill up to `wanted` bytes of room, and say how many those are.
    ///
    /// # Errors
    ///
    /// Those of `read`.
    pub fn fill(
        &self,
        wanted: usize,
        read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<Bytes> {
        let mut chunk = self.take(wanted);
        chunk.length = read(&mut chunk.room)?;
        Ok(Bytes::from_owner(chunk))
    }

    /// Only room of the largest size is kept: who wants less has little to send.
    fn take(&self, wanted: usize) -> Chunk {
        let spare = (wanted == FILE_CHUNK).then(|| self.0.lock().ok()?.pop());
        Chunk {
            room: spare.flatten().unwrap_or_else(|| vec![0; wanted]),
            length: 0,
            home: self.clone(),
        }
    }
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        self.room.get(..self.length).unwrap_or(&self.room)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if self.room.len() != FILE_CHUNK {
            return;
        }
        if let Ok(mut spare) = self.home.0.lock()
            && spare.len() < SPARE_CHUNKS
        {
            spare.push(std::mem::take(&mut self.room));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::{Bytes, Chunks, FILE_CHUNK, SPARE_CHUNKS};

    fn take(chunks: &Chunks, wanted: usize) -> Bytes {
        chunks.fill(wanted, |room| Ok(room.len())).unwrap()
    }

    fn spare(chunks: &Chunks) -> usize {
        chunks.0.lock().unwrap().len()
    }

    #[test]
    fn room_comes_back_with_the_last_byte() {
        let chunks = Chunks::default();
        let mut bytes = take(&chunks, FILE_CHUNK);
        let address = bytes.as_ptr();
        let front = bytes.split_to(1);
        drop(bytes);
        assert_eq!(spare(&chunks), 0);
        drop(front);
        assert_eq!(spare(&chunks), 1);
        assert_eq!(take(&chunks, FILE_CHUNK).as_ptr(), address);
    }

    #[test]
    fn only_what_was_filled_is_handed_out() {
        let chunks = Chunks::default();
        drop(take(&chunks, FILE_CHUNK));
        let bytes = chunks.fill(FILE_CHUNK, |room| {
            room[..3].copy_from_slice(b"abc");
            Ok(3)
        });
        assert_eq!(bytes.unwrap(), b"abc"[..]);
        let failed = chunks.fill(FILE_CHUNK, |_| Err(io::ErrorKind::Other.into()));
        assert!(failed.is_err());
        assert_eq!(spare(&chunks), 1, "room is not lost with the read");
    }

    #[test]
    fn no_more_is_kept_than_permitted() {
        let chunks = Chunks::default();
        let held: Vec<_> = (0..=SPARE_CHUNKS)
            .map(|_| take(&chunks, FILE_CHUNK))
            .collect();
        drop(held);
        assert_eq!(spare(&chunks), SPARE_CHUNKS);
        let small = Chunks::default();
        drop(take(&small, FILE_CHUNK - 1));
        assert_eq!(spare(&small), 0, "small room isn't kept");
    }
}
