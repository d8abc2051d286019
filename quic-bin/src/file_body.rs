//! A file on its way out, a chunk at a time, without ever waiting for the disk.
//!
//! What the system has in memory is read at once. The rest is asked for: a [`FileRead`] goes to a thread that may wait and
//! comes back with its bytes, and from then on the next chunk is read while one is being sent.

use std::{fs::File, io::Read as _};

use crate::limits::FILE_CHUNK;

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
    chunk: Vec<u8>,
    /// How much of the chunk has been handed out.
    used: usize,
    /// The file, and the chunk behind the current one; `None` while someone else has it.
    next: Option<FileRead>,
    /// The system has not had it in memory, so chunks are asked for ahead of time.
    is_cold: bool,
}

/// A chunk of a file that is to be read, or has been.
#[derive(Debug)]
pub struct FileRead {
    file: File,
    chunk: Vec<u8>,
    is_done: bool,
}

impl FileBody {
    /// The first `length` bytes of a file.
    #[must_use]
    pub const fn new(file: File, length: u64) -> Self {
        Self {
            left: length,
            chunk: Vec::new(),
            used: 0,
            next: Some(FileRead {
                file,
                chunk: Vec::new(),
                is_done: false,
            }),
            is_cold: false,
        }
    }

    /// Hands out what comes next, until `accept` takes less than it was given.
    ///
    /// # Errors
    ///
    /// When the body can't be completed.
    pub fn write(&mut self, mut accept: impl FnMut(&[u8]) -> usize) -> Result<Written, Incomplete> {
        loop {
            let rest = self.chunk.get(self.used..).unwrap_or_default();
            if !rest.is_empty() {
                let offered = rest.len();
                let taken = accept(rest).min(offered);
                self.used += taken;
                if taken < offered {
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
        let mut read = self.next.take_if(|read| is_wanted && !read.is_done)?;
        read.prepare(self.left);
        Some(read)
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
        if !read.is_done && !self.is_cold {
            read.prepare(self.left);
            read.read_what_is_in_memory();
        }
        if !read.is_done {
            self.is_cold = true;
            return Ok(false);
        }
        if read.chunk.is_empty() {
            return Err(Incomplete);
        }
        std::mem::swap(&mut self.chunk, &mut read.chunk);
        read.is_done = false;
        self.used = 0;
        self.left -= u64::try_from(self.chunk.len()).unwrap_or_default();
        Ok(true)
    }
}

impl FileRead {
    /// Makes room for what is to be read.
    fn prepare(&mut self, left: u64) {
        let wanted = usize::try_from(left).unwrap_or(FILE_CHUNK).min(FILE_CHUNK);
        self.chunk.resize(wanted, 0);
        self.is_done = false;
    }

    /// Reads, and waits for the disk. An empty chunk says that there is nothing, whatever the reason.
    pub fn read(&mut self) {
        let length = self.file.read(&mut self.chunk).unwrap_or_default();
        self.chunk.truncate(length);
        self.is_done = true;
    }

    /// Reads only if there is no waiting.
    #[cfg(target_os = "linux")]
    fn read_what_is_in_memory(&mut self) {
        use std::io::IoSliceMut;

        use rustix::io::{ReadWriteFlags, preadv2};

        let mut slices = [IoSliceMut::new(&mut self.chunk)];
        // Minus one: from the file's own position, which moves on.
        let read = preadv2(&self.file, &mut slices, u64::MAX, ReadWriteFlags::NOWAIT);
        if let Ok(length) = read {
            self.chunk.truncate(length);
            self.is_done = true;
        }
    }

    /// Nothing is known about what there is in memory.
    #[cfg(not(target_os = "linux"))]
    #[expect(
        clippy::unused_self,
        clippy::needless_pass_by_ref_mut,
        reason = "has work elsewhere"
    )]
    const fn read_what_is_in_memory(&mut self) {}
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        io::{Seek as _, SeekFrom, Write as _},
    };

    use super::{FILE_CHUNK, FileBody, Incomplete, Written};

    fn file(content: &[u8]) -> File {
        let mut file = tempfile();
        file.write_all(content).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        file
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
                out.extend_from_slice(&piece[..taken]);
                room -= taken;
                taken
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

    #[test]
    fn what_is_in_memory_and_what_is_not_both_come_whole() {
        for length in [0, 1, FILE_CHUNK, FILE_CHUNK + 1, 5 * FILE_CHUNK / 2] {
            let content = content(length);
            for step in [1000, FILE_CHUNK, usize::MAX] {
                for is_cold in [false, true] {
                    let mut body = FileBody::new(file(&content), length.try_into().unwrap());
                    body.is_cold = is_cold;
                    let (all, reads) = write_all(body, step);
                    assert!(all.unwrap() == content);
                    if is_cold {
                        assert_eq!(reads, length.div_ceil(FILE_CHUNK));
                    }
                }
            }
        }
    }

    #[test]
    fn a_cold_file_is_read_while_its_last_chunk_is_sent() {
        let length = 3 * FILE_CHUNK;
        let mut body = FileBody::new(file(&content(length)), length.try_into().unwrap());
        body.is_cold = true;
        assert_eq!(body.write(|_| 0), Ok(Written::Unread));
        let mut read = body.take_read().unwrap();
        assert_eq!(body.write(|_| 0), Ok(Written::Unread), "it is away");
        read.read();
        body.on_read(read);
        assert_eq!(body.write(|_| 1), Ok(Written::Full));
        assert!(body.take_read().is_some());
    }

    #[test]
    fn a_file_that_shrank_is_incomplete() {
        for is_cold in [false, true] {
            let mut body = FileBody::new(file(&content(1000)), 2000);
            body.is_cold = is_cold;
            assert_eq!(write_all(body, usize::MAX).0, Err(Incomplete));
        }
    }
}
