//! What a peer may not do, with the exact code, at the bound and one beyond it.

use super::{
    BIDI, GENEROUS, Side, Streams, UNI, client_bidi, client_uni, server, server_bidi, server_uni,
    settings,
};
use crate::error::Error;
use crate::limits::REASSEMBLY_PIECES;
use crate::wire::{StreamId, TransportErrorCode as Code};

type Act = fn(&mut Streams, StreamId) -> Result<(), Error>;

const STREAM: Act = |streams, id| streams.on_stream(id, 0, b"x", false);
const RESET: Act = |streams, id| streams.on_reset_stream(id, 7, 1);
const BLOCKED: Act = |streams, id| streams.on_stream_data_blocked(id, 1);
const STOP: Act = |streams, id| streams.on_stop_sending(id, 7);
const MAX: Act = |streams, id| streams.on_max_stream_data(id, 1);

fn code(result: Result<(), Error>) -> Code {
    result.unwrap_err().code
}

/// RFC 9000, 19.4, 19.8, 19.13: frames of the sender for a stream that only we send on MUST be STREAM_STATE_ERROR.
#[test]
fn the_receiver_of_our_stream_does_not_send() {
    let mut streams = server();
    assert_eq!(streams.open(UNI), Some(server_uni(0)));
    for act in [STREAM, RESET, BLOCKED] {
        assert_eq!(
            code(act(&mut streams, server_uni(0))),
            Code::STREAM_STATE_ERROR
        );
        assert_eq!(
            code(act(&mut streams, server_uni(1))),
            Code::STREAM_STATE_ERROR
        );
    }
}

/// RFC 9000, 19.5, 19.10: frames of the receiver for a stream that only the peer sends on MUST be STREAM_STATE_ERROR.
#[test]
fn the_sender_of_its_own_stream_does_not_receive() {
    let mut streams = server();
    for act in [STOP, MAX] {
        assert_eq!(
            code(act(&mut streams, client_uni(0))),
            Code::STREAM_STATE_ERROR
        );
    }
    STREAM(&mut streams, client_uni(0)).unwrap();
    for act in [STOP, MAX] {
        assert_eq!(
            code(act(&mut streams, client_uni(0))),
            Code::STREAM_STATE_ERROR
        );
    }
}

/// RFC 9000, 19.5, 19.8, 19.10: a locally initiated stream that has not been created MUST be STREAM_STATE_ERROR.
#[test]
fn our_streams_are_not_opened_by_the_peer() {
    for act in [STREAM, RESET, BLOCKED, STOP, MAX] {
        let mut streams = server();
        assert_eq!(
            code(act(&mut streams, server_bidi(0))),
            Code::STREAM_STATE_ERROR
        );
        assert_eq!(streams.open(BIDI), Some(server_bidi(0)));
        assert_eq!(act(&mut streams, server_bidi(0)), Ok(()));
        assert_eq!(
            code(act(&mut streams, server_bidi(1))),
            Code::STREAM_STATE_ERROR
        );
    }
}

/// RFC 9000, 4.6: a stream beyond the limit MUST be STREAM_LIMIT_ERROR, whatever frame names it.
#[test]
fn the_last_stream_of_the_limit_opens_and_the_next_does_not() {
    for act in [STREAM, RESET, BLOCKED, STOP, MAX] {
        let mut streams = server();
        assert_eq!(act(&mut streams, client_bidi(9)), Ok(()));
        assert_eq!(
            code(act(&mut streams, client_bidi(10))),
            Code::STREAM_LIMIT_ERROR
        );
        assert_eq!(streams.count(), 1, "nothing is made for those between");
    }
    for act in [STREAM, RESET, BLOCKED] {
        let mut streams = server();
        assert_eq!(act(&mut streams, client_uni(9)), Ok(()));
        assert_eq!(
            code(act(&mut streams, client_uni(10))),
            Code::STREAM_LIMIT_ERROR
        );
    }
}

/// RFC 9000, 4.1: more than the stream's limit MUST be FLOW_CONTROL_ERROR.
#[test]
fn the_last_byte_of_the_streams_limit_fits_and_the_next_does_not() {
    let mut streams = server();
    assert_eq!(streams.on_stream(client_bidi(0), 999, b"x", false), Ok(()));
    let over = streams.on_stream(client_bidi(0), 1000, b"x", false);
    assert_eq!(code(over), Code::FLOW_CONTROL_ERROR);

    let mut streams = server();
    assert_eq!(streams.on_reset_stream(client_bidi(0), 0, 1000), Ok(()));
    let over = streams.on_reset_stream(client_bidi(1), 0, 1001);
    assert_eq!(code(over), Code::FLOW_CONTROL_ERROR);
}

/// RFC 9000, 4.1: more than the connection's limit MUST be FLOW_CONTROL_ERROR, in gaps and by RESET_STREAM too.
#[test]
fn the_last_byte_of_the_connections_limit_fits_and_the_next_does_not() {
    let mut streams = server();
    assert_eq!(streams.on_stream(client_bidi(0), 999, b"x", false), Ok(()));
    assert_eq!(streams.on_stream(client_bidi(1), 499, b"x", false), Ok(()));
    assert_eq!(
        streams.on_stream(client_bidi(1), 0, b"old bytes are free", false),
        Ok(())
    );
    let over = streams.on_stream(client_bidi(2), 0, b"x", false);
    assert_eq!(code(over), Code::FLOW_CONTROL_ERROR);
    let over = streams.on_reset_stream(client_bidi(1), 0, 501);
    assert_eq!(code(over), Code::FLOW_CONTROL_ERROR);
    assert_eq!(streams.on_reset_stream(client_bidi(1), 0, 500), Ok(()));
}

/// RFC 9000, 19.8: an end beyond 2^62 - 1 MUST be an error.
#[test]
fn a_stream_ends_at_2_to_the_62() {
    let mut streams = Streams::new(Side::Server, settings(1, u64::MAX, u64::MAX));
    streams.set_peer_limits(GENEROUS);
    let last = quic_common::MAX_VARINT;
    assert_eq!(streams.on_stream(client_bidi(0), last, b"", false), Ok(()));
    for offset in [last, u64::MAX] {
        let over = streams.on_stream(client_bidi(0), offset, b"x", false);
        assert_eq!(code(over), Code::FRAME_ENCODING_ERROR);
    }
}

/// RFC 9000, 4.5: a final size that changes, or data beyond it, SHOULD be FINAL_SIZE_ERROR.
#[test]
fn the_final_size_is_final() {
    let id = client_bidi(0);
    let finished = || {
        let mut streams = server();
        streams.on_stream(id, 5, b"67890", true).unwrap();
        streams
    };
    let mut streams = finished();
    assert_eq!(streams.on_stream(id, 5, b"67890", true), Ok(()));
    assert_eq!(streams.on_stream(id, 0, b"12345", false), Ok(()));
    assert_eq!(streams.on_reset_stream(id, 0, 10), Ok(()));
    let breaches: [Act; 5] = [
        |streams, id| streams.on_stream(id, 10, b"1", false),
        |streams, id| streams.on_stream(id, 0, b"123456789", true),
        |streams, id| streams.on_stream(id, 11, b"", true),
        |streams, id| streams.on_reset_stream(id, 0, 9),
        |streams, id| streams.on_reset_stream(id, 0, 11),
    ];
    for breach in breaches {
        assert_eq!(code(breach(&mut finished(), id)), Code::FINAL_SIZE_ERROR);
        let mut reset = server();
        reset.on_reset_stream(id, 0, 10).unwrap();
        assert_eq!(code(breach(&mut reset, id)), Code::FINAL_SIZE_ERROR);
    }
    let mut streams = server();
    streams.on_stream(id, 9, b"0", false).unwrap();
    for size in [9, 0] {
        assert_eq!(
            code(streams.on_stream(id, size, b"", true)),
            Code::FINAL_SIZE_ERROR
        );
        assert_eq!(
            code(streams.on_reset_stream(id, 0, size)),
            Code::FINAL_SIZE_ERROR
        );
    }
}

/// RFC 9000, 2.2: data at an offset that changes: the first copy wins.
#[test]
fn the_first_copy_of_a_byte_is_read() {
    let mut streams = server();
    streams.on_stream(client_bidi(0), 1, b"bc", false).unwrap();
    streams.on_stream(client_bidi(0), 0, b"XYZ", true).unwrap();
    let mut buffer = [0; 8];
    let read = streams.read(client_bidi(0), &mut buffer).unwrap();
    assert_eq!((&buffer[..read.length], read.fin), (&b"Xbc"[..], true));
}

/// RFC 9000, 21.7: fragments at every second offset are bounded.
#[test]
fn a_stream_of_crumbs_is_refused() {
    let mut streams = Streams::new(Side::Server, settings(1, 1 << 20, 1 << 20));
    let mut offset = 1;
    let error = loop {
        if let Err(error) = streams.on_stream(client_bidi(0), offset, b"x", false) {
            break error;
        }
        offset += 2;
        assert!(offset < 1 << 20);
    };
    assert_eq!(error.code, Code::PROTOCOL_VIOLATION);
    assert!(offset / 2 >= u64::try_from(REASSEMBLY_PIECES).unwrap());
}

#[test]
fn frames_for_an_ended_stream_are_ignored() {
    let mut streams = server();
    let id = client_uni(0);
    streams.on_stream(id, 0, b"x", true).unwrap();
    streams.stop(id, 0).unwrap();
    while streams.next_event().is_some() {}
    assert_eq!(streams.count(), 0);
    for act in [STREAM, RESET, BLOCKED] {
        assert_eq!(act(&mut streams, id), Ok(()));
    }
    assert_eq!(streams.count(), 0);
    assert_eq!(streams.next_event(), None);
}
