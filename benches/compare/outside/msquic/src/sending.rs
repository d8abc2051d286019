//! Bytes that are lent to msquic until it has done with them.

use std::ffi::c_void;

use msquic::{BufferRef, SendFlags, Status, Stream, StreamRef};

/// Bytes handed over at a time.
const PIECE: usize = 1 << 20;

/// What is sent, generated.
static BYTES: [u8; PIECE] = [7; PIECE];

/// Bytes on loan.
struct Loan {
    buffers: [BufferRef; 1],
    /// Kept alive; generated ones are static.
    _own: Vec<u8>,
}

/// What is still to be sent on a stream.
#[derive(Default)]
pub(crate) struct Sending {
    left: u64,
    is_all: bool,
}

/// Sends bytes of our own, and nothing after them if that is the end.
pub(crate) fn send(stream: &Stream, bytes: Vec<u8>, is_end: bool) -> Result<(), Status> {
    let buffers = [BufferRef::from(bytes.as_slice())];
    lend(
        stream,
        Box::new(Loan {
            buffers,
            _own: bytes,
        }),
        is_end,
    )
}

fn lend(stream: &Stream, loan: Box<Loan>, is_end: bool) -> Result<(), Status> {
    let flags = if is_end {
        SendFlags::FIN
    } else {
        SendFlags::NONE
    };
    let loan = Box::into_raw(loan);
    // SAFETY: the loan stays where it is until `take_back`.
    let sent = unsafe { stream.send(&(*loan).buffers, flags, loan.cast::<c_void>()) };
    if sent.is_err() {
        take_back(loan.cast::<c_void>());
    }
    sent
}

/// The bytes behind a `SendComplete`.
pub(crate) fn take_back(context: *const c_void) {
    // SAFETY: it is the box that `lend` gave away, and comes back once.
    drop(unsafe { Box::from_raw(context.cast_mut().cast::<Loan>()) });
}

impl Sending {
    /// Begins to send so many bytes, up to the end of the stream.
    pub(crate) fn begin(&mut self, stream: &StreamRef, bytes: u64) -> Result<(), Status> {
        self.left = bytes;
        self.is_all = bytes == 0;
        self.next(stream)?;
        self.next(stream)
    }

    /// Sends the next piece, if there is one.
    pub(crate) fn next(&mut self, stream: &StreamRef) -> Result<(), Status> {
        if self.left == 0 || self.is_all {
            return Ok(());
        }
        let size = usize::try_from(self.left).map_or(PIECE, |left| left.min(PIECE));
        self.left -= size as u64;
        self.is_all = self.left == 0;
        let buffers = [BufferRef::from(&BYTES[..size])];
        let loan = Loan {
            buffers,
            _own: Vec::new(),
        };
        lend(stream, Box::new(loan), self.is_all)
    }
}
