//! The server's side: lines in, bodies out.

use std::{collections::VecDeque, sync::Arc, time::Instant};

use quic_common::IdMap;
use quic_transport::{
    Application, Connection, DatagramEvent, Direction, Event, Handle, StreamEvent, StreamId,
};

use super::GIVEN_UP;
use crate::{
    file_body::FileRead,
    limits::{MAX_REQUEST_LINE, OPEN_FILES},
    reader::Requests,
    site::{Body, Site},
};

/// HTTP/0.9 on one connection.
#[derive(Debug)]
pub struct Responder {
    site: Arc<Site>,
    requests: Requests,
    exchanges: IdMap<StreamId, Exchange>,
    /// Lines that ask while too many files are open.
    waiting: VecDeque<(StreamId, Vec<u8>)>,
    /// The datagram that is on its way back.
    echo: Vec<u8>,
}

/// A request that isn't answered whole.
#[derive(Debug)]
enum Exchange {
    /// The line so far.
    Asking(Vec<u8>),
    /// A body on its way.
    Sending(Body),
}

impl Responder {
    /// Serves `site` on a new connection, which `requests` belongs to.
    #[must_use]
    pub fn new(site: Arc<Site>, requests: Requests) -> Self {
        Self {
            site,
            requests,
            exchanges: IdMap::default(),
            waiting: VecDeque::new(),
            echo: Vec::new(),
        }
    }

    fn on_event(&mut self, connection: &mut Connection, event: StreamEvent) {
        match event {
            StreamEvent::Opened(id) if id.direction() == Direction::Unidirectional => {
                // There is no way to answer.
                let _ = connection.stop(id, GIVEN_UP);
            }
            StreamEvent::Opened(id) => {
                self.exchanges.insert(id, Exchange::Asking(Vec::new()));
            }
            StreamEvent::Readable(id) => self.read(connection, id),
            StreamEvent::Writable(id) => self.send(connection, id),
            StreamEvent::Reset { id, .. } => {
                if matches!(self.exchanges.get(&id), Some(Exchange::Asking(_))) {
                    self.give_up(connection, id);
                }
            }
            StreamEvent::Stopped { id, .. } => {
                self.exchanges.remove(&id);
                self.waiting.retain(|(waiting, _)| *waiting != id);
            }
            _ => {}
        }
    }

    /// Reads the line, and answers it once it is whole; what comes behind it is not wanted.
    fn read(&mut self, connection: &mut Connection, id: StreamId) {
        while let Ok(fill) = connection.fill(id) {
            let (length, is_end) = (fill.data.len(), fill.fin);
            let is_whole = match self.exchanges.get_mut(&id) {
                Some(Exchange::Asking(line)) => {
                    line.extend_from_slice(fill.data);
                    let is_whole = is_end || line.contains(&b'\n');
                    if !is_whole && line.len() > MAX_REQUEST_LINE {
                        let _ = connection.stop(id, GIVEN_UP);
                        return self.give_up(connection, id);
                    }
                    is_whole
                }
                Some(Exchange::Sending(_)) | None => false,
            };
            if connection.consume(id, length).is_err() && length > 0 {
                return;
            }
            if is_whole {
                self.answer(connection, id);
            }
            if length == 0 || is_end {
                return;
            }
        }
    }

    fn answer(&mut self, connection: &mut Connection, id: StreamId) {
        let Some(Exchange::Asking(line)) = self.exchanges.remove(&id) else {
            return;
        };
        if self.may_open() {
            self.answer_line(connection, id, &line);
        } else {
            self.waiting.push_back((id, line));
        }
    }

    fn answer_line(&mut self, connection: &mut Connection, id: StreamId, line: &[u8]) {
        let page = path_of(line).map(|path| self.site.get(path));
        match page.filter(|page| page.status == 200) {
            Some(page) => {
                self.exchanges.insert(id, Exchange::Sending(page.body));
                self.send(connection, id);
            }
            None => self.give_up(connection, id),
        }
    }

    /// Whether another file may be opened: a client that doesn't read keeps those open that it has asked for.
    fn may_open(&self) -> bool {
        let is_file = |exchange: &&Exchange| match exchange {
            Exchange::Sending(body) => body.is_file(),
            Exchange::Asking(_) => false,
        };
        self.exchanges.len() < OPEN_FILES
            || self.exchanges.values().filter(is_file).count() < OPEN_FILES
    }

    /// Answers requests that have waited for others to be answered.
    fn answer_waiting(&mut self, connection: &mut Connection) {
        while !self.waiting.is_empty() && self.may_open() {
            if let Some((id, line)) = self.waiting.pop_front() {
                self.answer_line(connection, id, &line);
            }
        }
    }

    /// The connection has been made.
    pub const fn set_connection(&mut self, connection: Handle) {
        self.requests.set_connection(connection);
    }

    /// A chunk of a body has been read.
    pub fn on_read(&mut self, connection: &mut Connection, id: StreamId, read: FileRead) {
        if let Some(Exchange::Sending(body)) = self.exchanges.get_mut(&id) {
            body.on_read(read);
            self.send(connection, id);
            self.answer_waiting(connection);
        }
    }

    fn send(&mut self, connection: &mut Connection, id: StreamId) {
        let Some(Exchange::Sending(body)) = self.exchanges.get_mut(&id) else {
            return;
        };
        match body.write_asking(id, &self.requests, |piece| {
            // What isn't taken stays.
            let _ = connection.stream_send_bytes(id, piece);
        }) {
            Ok(false) => {}
            Ok(true) => {
                let _ = connection.finish(id);
                self.exchanges.remove(&id);
            }
            Err(_incomplete) => self.give_up(connection, id),
        }
    }

    /// Returns every datagram that has come. None do unless the connection's settings take them.
    fn return_datagrams(&mut self, connection: &mut Connection) {
        while let Some(datagram) = connection.receive_datagram() {
            self.echo.clear();
            self.echo.extend_from_slice(datagram);
            // What can't be sent is as good as lost.
            let _ = connection.send_datagram(&self.echo);
        }
    }

    fn give_up(&mut self, connection: &mut Connection, id: StreamId) {
        let _ = connection.reset(id, GIVEN_UP);
        self.exchanges.remove(&id);
    }
}

impl Application for Responder {
    fn rest(&mut self) {
        self.exchanges.shrink_to_fit();
        self.waiting.shrink_to_fit();
    }

    fn process(&mut self, connection: &mut Connection, _: Instant) {
        while let Some(event) = connection.next_event() {
            match event {
                Event::Stream(event) => self.on_event(connection, event),
                Event::Datagram(DatagramEvent::Readable) => self.return_datagrams(connection),
                _ => {}
            }
        }
        self.answer_waiting(connection);
    }
}

/// What a request line asks for; a client may say more behind the path.
fn path_of(line: &[u8]) -> Option<&str> {
    let line = line.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    words.next().filter(|method| *method == "GET")?;
    words.next()
}

#[cfg(test)]
mod tests {
    use super::path_of;

    #[test]
    fn a_line_names_a_path() {
        for line in [
            "GET /a\r\n",
            "GET /a",
            "GET /a\n",
            "GET /a HTTP/0.9\r\nGET /b\r\n",
        ] {
            assert_eq!(path_of(line.as_bytes()), Some("/a"), "{line}");
        }
        for line in [
            "",
            "GET",
            "GET \r\n",
            "POST /a\r\n",
            "get /a\r\n",
            "\nGET /a",
        ] {
            assert_eq!(path_of(line.as_bytes()), None, "{line}");
        }
        assert_eq!(path_of(b"GET /\xff\r\n"), None);
    }
}
