//! A file on its way out, a chunk at a time, without ever waiting for the disk.
//!
//! What the system has in memory is read at once. The rest is asked for: a [`FileRead`] goes to a thread that may wait and
//! comes back with its bytes, and from then on the next chunk is read while one is being sent.

use std::{fs::File, io, io::Read as _};

use quic_transport::Bytes;

use crate::{
    chunks::Chunks,
    limits::{FILE_CHUNK, FIRST_FILE_CHUNK},
};

/// The body can't be completed: the file shrank, or the disk failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incomplete;

/// How far a body has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Written {
    /// To its end.
    All,
    /// The receiver takes no more for now.
    Full,
    /// What comes next is being read, or to be asked for with [`FileBody::take_read`].
    Unread,
}

/// A file that is being sent.
#[derive(Debug)]
pub struct FileBody {
    /// Bytes that are in no chunk yet.
    left: u64,
    /// What hasn't been handed out of the current chunk.
    chunk: Bytes,
    /// The file, and the chunk behind the current one; `None` while someone else has it.
    next: Option<FileRead>,
    /// The system has not had it in memory, so chunks are asked for ahead of time.
    is_cold: bool,
}

/// A chunk of a file that is to be read, or has been.
#[derive(Debug)]
pub struct FileRead {
    file: File,
    chunks: Chunks,
    /// Bytes to be read.
    wanted: usize,
    /// What was read, once it has been. Empty says that there is nothing, whatever the reason.
    chunk: Option<Bytes>,
}

impl FileBody {
    /// The first `length` bytes of a file, read into room of `chunks`.
    #[must_use]
    pub fn new(file: File, length: u64, chunks: &Chunks) -> Self {
        let mut next = FileRead {
            file,
            chunks: chunks.clone(),
            wanted: 0,
            chunk: None,
        };
        next.want(FIRST_FILE_CHUNK, length);
        Self {
            left: length,
            chunk: Bytes::new(),
            next: Some(next),
            is_cold: false,
        }
    }

    /// Hands out what comes next, until `accept` leaves something of it.
    ///
    /// # Errors
    ///
    /// When the body can't be completed.
    pub fn write(&mut self, mut accept: impl FnMut(&mut Bytes)) -> Result<Written, Incomplete> {
        loop {
            if !self.chunk.is_empty() {
                accept(&mut self.chunk);
                if !self.chunk.is_empty() {
                    return Ok(Written::Full);
                }
            } else if self.left == 0 {
                return Ok(Written::All);
            } else if !self.advance()? {
                return Ok(Written::Unread);
            }
        }
    }

    /// A chunk that somebody has to read, and bring back to [`FileBody::on_read`].
    pub fn take_read(&mut self) -> Option<FileRead> {
        let is_wanted = self.is_cold && self.left > 0;
        self.next.take_if(|read| is_wanted && read.chunk.is_none())
    }

    /// A chunk has been read.
    pub fn on_read(&mut self, read: FileRead) {
        self.next = Some(read);
    }

    /// Goes on to the next chunk; returns whether it is here.
    fn advance(&mut self) -> Result<bool, Incomplete> {
        let Some(read) = &mut self.next else {
            return Ok(false);
        };
        if read.chunk.is_none() && !self.is_cold {
            read.read_what_is_in_memory();
        }
        let Some(chunk) = read.chunk.take() else {
            self.is_cold = true;
            return Ok(false);
        };
        if chunk.is_empty() {
            return Err(Incomplete);
        }
        self.left -= u64::try_from(chunk.len()).unwrap_or_default();
        read.want(chunk.len().saturating_mul(2), self.left);
        self.chunk = chunk;
        Ok(true)
    }
}

impl FileRead {
    /// The next one has `size` bytes, within what is allowed and `left`.
    fn want(&mut self, size: usize, left: u64) {
        let left = usize::try_from(left).unwrap_or(FILE_CHUNK);
        self.wanted = size.clamp(FIRST_FILE_CHUNK, FILE_CHUNK).min(left);
    }

    /// Reads, and waits for the disk.
    pub fn read(&mut self) {
        let read = self.fill(|mut file, room| file.read(room));
        self.chunk = Some(read.unwrap_or_default());
    }

    /// Reads only if there is no waiting.
    fn read_what_is_in_memory(&mut self) {
        self.chunk = self.fill(read_without_waiting).ok();
    }

    fn fill(&self, read: impl FnOnce(&File, &mut [u8]) -> io::Result<usize>) -> io::Result<Bytes> {
        self.chunks.fill(self.wanted, |room| read(&self.file, room))
    }
}

/// Fails if what comes next isn't in memory.
#[cfg(target_os = "linux")]
fn read_without_waiting(file: &File, room: &mut [u8]) -> io::Result<usize> {
    use std::io::IoSliceMut;

    use rustix::io::{ReadWriteFlags, preadv2};

    // Minus one: from the file's own position, which moves on.
    let mut slices = [IoSliceMut::new(room)];
    Ok(preadv2(
        file,
        &mut slices,
        u64::MAX,
        ReadWriteFlags::NOWAIT,
    )?)
}

/// Nothing is known about what there is in memory.
#[cfg(not(target_os = "linux"))]
fn read_without_waiting(_: &File, _: &mut [u8]) -> io::Result<usize> {
    Err(io::ErrorKind::WouldBlock.into())
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        io::{Seek as _, SeekFrom, Write as _},
    };

    use quic_transport::Bytes;

    use super::{Chunks, FILE_CHUNK, FIRST_FILE_CHUNK, FileBody, Incomplete, Written};

    fn file(content: &[u8]) -> File {
        let mut file = tempfile();
        file.write_all(content).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        file
    }

    fn body(content: &[u8], length: usize) -> FileBody {
        FileBody::new(
            file(content),
            length.try_into().unwrap(),
            &Chunks::default(),
        )
    }

    /// A file without a name.
    fn tempfile() -> File {
        let name = format!("file-body-{:?}", std::thread::current().id());
        let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .unwrap();
        std::fs::remove_file(path).unwrap();
        file
    }

    fn content(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at / 251).to_le_bytes()[0]).collect()
    }

    /// Writes `body` out in pieces of at most `step` bytes; the reads that it asks for are done here.
    fn write_all(mut body: FileBody, step: usize) -> (Result<Vec<u8>, Incomplete>, usize) {
        let (mut out, mut reads) = (Vec::new(), 0);
        loop {
            let mut room = step;
            let written = body.write(|piece| {
                let taken = piece.len().min(room);
                out.extend_from_slice(&piece.split_to(taken));
                room -= taken;
            });
            match written {
                Ok(Written::All) => return (Ok(out), reads),
                Ok(Written::Full | Written::Unread) => {}
                Err(incomplete) => return (Err(incomplete), reads),
            }
            if let Some(mut read) = body.take_read() {
                assert_eq!(body.take_read().map(drop), None, "one at a time");
                read.read();
                body.on_read(read);
                reads += 1;
            }
        }
    }

    /// How many reads a file takes: each twice as long as the one before, from and up to a limit.
    fn reads_of(length: usize) -> usize {
        let sizes = std::iter::successors(Some(FIRST_FILE_CHUNK), |size| {
            Some((2 * size).min(FILE_CHUNK))
        });
        sizes
            .scan(length, |left, size| {
                let is_left = *left > 0;
                *left = left.saturating_sub(size);
                is_left.then_some(())
            })
            .count()
    }

    #[test]
    fn what_is_in_memory_and_what_is_not_both_come_whole() {
        for length in [0, 1, FILE_CHUNK, FILE_CHUNK + 1, 5 * FILE_CHUNK / 2] {
            let content = content(length);
            for step in [1000, FILE_CHUNK, usize::MAX] {
                for is_cold in [false, true] {
                    let mut body = body(&content, length);
                    body.is_cold = is_cold;
                    let (all, reads) = write_all(body, step);
                    assert!(all.unwrap() == content);
                    if is_cold {
                        assert_eq!(reads, reads_of(length));
                    }
                }
            }
        }
    }

    fn take_one(piece: &mut Bytes) {
        drop(piece.split_to(1));
    }

    #[test]
    fn a_body_that_nobody_takes_holds_little() {
        let mut body = body(&content(3 * FILE_CHUNK), 3 * FILE_CHUNK);
        assert_eq!(body.write(take_one), Ok(Written::Full));
        assert_eq!(body.chunk.len(), FIRST_FILE_CHUNK - 1);
    }

    #[test]
    fn a_cold_file_is_read_while_its_last_chunk_is_sent() {
        let length = 3 * FILE_CHUNK;
        let mut body = body(&content(length), length);
        body.is_cold = true;
        assert_eq!(body.write(|_| ()), Ok(Written::Unread));
        let mut read = body.take_read().unwrap();
        assert_eq!(body.write(|_| ()), Ok(Written::Unread), "it is away");
        read.read();
        body.on_read(read);
        assert_eq!(body.write(take_one), Ok(Written::Full));
        assert!(body.take_read().is_some());
    }

    #[test]
    fn a_file_that_shrank_is_incomplete() {
        for is_cold in [false, true] {
            let mut body = body(&content(1000), 2000);
            body.is_cold = is_cold;
            assert_eq!(write_all(body, usize::MAX).0, Err(Incomplete));
        }
    }
}
