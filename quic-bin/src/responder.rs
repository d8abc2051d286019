//! One connection of the server: requests in, pages out.

use std::{collections::VecDeque, sync::Arc, time::Instant};

use quic_common::IdMap;
use quic_http3::{Code, Field, Fields, ServerEvent, ServerSession};
use quic_transport::{Application, Connection, Event, Handle, StreamId};

use crate::{
    file_body::FileRead,
    limits::OPEN_FILES,
    reader::Requests,
    site::{Body, Page, Site},
};

/// HTTP/3 on one connection.
#[derive(Debug)]
pub struct Responder {
    site: Arc<Site>,
    requests: Requests,
    session: ServerSession,
    exchanges: IdMap<StreamId, Exchange>,
    /// Paths that are asked for while too many files are open.
    waiting: VecDeque<(StreamId, String)>,
    /// Requests that come before the handshake is complete are to be made again (RFC 8470, 5.2).
    refuses_early: bool,
}

/// A request that isn't answered whole.
#[derive(Debug)]
enum Exchange {
    /// An upload: bytes so far.
    Counting(u64),
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
            session: ServerSession::new(),
            exchanges: IdMap::default(),
            waiting: VecDeque::new(),
            refuses_early: false,
        }
    }

    /// Answers no request before the handshake is complete, but asks for it to be made again.
    #[must_use]
    pub const fn refusing_early_requests(mut self) -> Self {
        self.refuses_early = true;
        self
    }

    fn on_event(&mut self, connection: &mut Connection, event: ServerEvent) {
        match event {
            ServerEvent::Request { id, fields } => self.on_request(connection, id, fields),
            ServerEvent::Data { id } => self.on_data(connection, id),
            ServerEvent::Finished { id } => self.on_finished(connection, id),
            ServerEvent::Writable { id } => self.send(connection, id),
            ServerEvent::Reset { id, .. }
            | ServerEvent::Stopped { id, .. }
            | ServerEvent::Failed { id, .. } => {
                self.exchanges.remove(&id);
                self.waiting.retain(|(waiting, _)| *waiting != id);
            }
            _ => {}
        }
    }

    fn on_request(&mut self, connection: &mut Connection, id: StreamId, fields: Fields) {
        let method = fields.method().unwrap_or_default();
        let path = fields
            .path()
            .and_then(|path| std::str::from_utf8(path).ok());
        match (method, path) {
            _ if self.refuses_early && connection.is_handshaking() => {
                self.answer(connection, id, Page::refusal(425), true);
            }
            (b"GET", Some(path)) if !self.may_open() => {
                self.waiting.push_back((id, path.to_owned()));
            }
            (b"GET" | b"HEAD", Some(path)) => {
                let page = self.site.get(path);
                let has_body = method == b"GET";
                self.answer(connection, id, page, has_body);
            }
            (b"POST" | b"PUT", Some(_)) if self.site.test_resources => {
                self.exchanges.insert(id, Exchange::Counting(0));
            }
            (_, None) => self.answer(connection, id, Page::refusal(400), true),
            _ => self.answer(connection, id, Page::refusal(405), true),
        }
        self.session.recycle(fields);
    }

    fn on_data(&mut self, connection: &mut Connection, id: StreamId) {
        let Some(Exchange::Counting(count)) = self.exchanges.get_mut(&id) else {
            // Nobody wants this body; the answer doesn't depend on it.
            let _ = self.session.stop(connection, id, Code::NO_ERROR);
            return;
        };
        while let Ok(data) = self.session.fill(connection, id) {
            let length = data.len();
            if length == 0 {
                return;
            }
            *count += u64::try_from(length).unwrap_or_default();
            if self.session.consume(connection, id, length).is_err() {
                return;
            }
        }
    }

    fn on_finished(&mut self, connection: &mut Connection, id: StreamId) {
        if let Some(Exchange::Counting(count)) = self.exchanges.get(&id) {
            let page = Page::text(200, format!("{count}\n"));
            self.exchanges.remove(&id);
            self.answer(connection, id, page, true);
        }
    }

    fn answer(&mut self, connection: &mut Connection, id: StreamId, page: Page, has_body: bool) {
        let status = page.status.to_string();
        let length = page.length.to_string();
        let fields = [
            Field::new(":status", &status),
            Field::new("content-type", page.content_type),
            Field::new("content-length", &length),
        ];
        if !has_body {
            let done = self.session.respond(connection, id, &fields);
            if done.is_ok() {
                let _ = self.session.finish(connection, id);
            }
            return;
        }
        if self.session.respond(connection, id, &fields).is_ok() {
            self.exchanges.insert(id, Exchange::Sending(page.body));
            self.send(connection, id);
        }
    }

    /// Whether another file may be opened: a client that doesn't read keeps those open that it has asked for.
    fn may_open(&self) -> bool {
        let is_file = |exchange: &&Exchange| match exchange {
            Exchange::Sending(body) => body.is_file(),
            Exchange::Counting(_) => false,
        };
        self.exchanges.len() < OPEN_FILES
            || self.exchanges.values().filter(is_file).count() < OPEN_FILES
    }

    /// Answers requests that have waited for others to be answered.
    fn answer_waiting(&mut self, connection: &mut Connection) {
        while !self.waiting.is_empty() && self.may_open() {
            if let Some((id, path)) = self.waiting.pop_front() {
                let page = self.site.get(&path);
                self.answer(connection, id, page, true);
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
        let session = &mut self.session;
        match body.write_asking(id, &self.requests, |piece| {
            // What isn't taken stays.
            let _ = session.send_body_bytes(connection, id, piece);
        }) {
            Ok(false) => {}
            Ok(true) => {
                let _ = self.session.finish(connection, id);
                self.exchanges.remove(&id);
            }
            Err(_incomplete) => {
                let _ = self.session.cancel(connection, id, Code::INTERNAL_ERROR);
                self.exchanges.remove(&id);
            }
        }
    }
}

impl Application for Responder {
    fn rest(&mut self) {
        self.session.rest();
        self.exchanges.shrink_to_fit();
        self.waiting.shrink_to_fit();
    }

    fn process(&mut self, connection: &mut Connection, now: Instant) {
        while let Some(event) = connection.next_event() {
            if let Event::Stream(event) = event {
                self.session.on_event(connection, event);
            }
        }
        while let Some(event) = self.session.next_event(connection, now) {
            self.on_event(connection, event);
        }
        self.answer_waiting(connection);
    }
}
