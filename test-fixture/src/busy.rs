//! An application that does anything with its streams, so that a peer finds them in every state.

use std::time::Instant;

use quic_transport::{Application, Connection, Direction, Event, StreamEvent};

/// Reads, writes, finishes, resets and stops whatever comes along.
#[derive(Debug, Default)]
pub struct Busy {
    steps: u64,
}

impl Application for Busy {
    fn process(&mut self, connection: &mut Connection, _: Instant) {
        while let Some(event) = connection.next_event() {
            self.steps += 1;
            if let Event::Stream(event) = event {
                self.on_stream(connection, event);
            }
        }
        if self.steps.is_multiple_of(3)
            && let Some(id) = connection.open(Direction::Unidirectional)
        {
            connection.stream_send(id, &[1; 3000]).unwrap();
        }
    }
}

impl Busy {
    /// Some streams can't be sent or read on; whatever is refused changes nothing.
    fn on_stream(&self, connection: &mut Connection, event: StreamEvent) {
        let mut buffer = [0; 700];
        match event {
            StreamEvent::Opened(id) | StreamEvent::Writable(id) => {
                let _outcome = match self.steps % 7 {
                    0 => connection.reset(id, 1),
                    1 => connection.finish(id),
                    _ => connection.stream_send(id, &buffer).map(|_| ()),
                };
                if let Some(own) = connection.open(Direction::Bidirectional) {
                    connection.stream_send(own, &buffer).unwrap();
                }
            }
            StreamEvent::Readable(id) if self.steps.is_multiple_of(9) => {
                let _outcome = connection.stop(id, 2);
            }
            StreamEvent::Readable(id) => {
                while connection
                    .stream_read(id, &mut buffer)
                    .is_ok_and(|read| read.length > 0)
                {}
            }
            StreamEvent::Available(direction) => {
                if let Some(id) = connection.open(direction) {
                    connection.stream_send(id, &buffer).unwrap();
                }
            }
            StreamEvent::Finished(_)
            | StreamEvent::Reset { .. }
            | StreamEvent::Stopped { .. }
            | _ => {}
        }
    }
}
