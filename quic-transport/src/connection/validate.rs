//! What a path's validation comes to, [RFC 9000, section 8.2](https://www.rfc-editor.org/rfc/rfc9000#section-8.2).

use std::{mem, time::Instant};

use super::Connection;
use crate::{
    error::CloseReason,
    event::PathNews,
    limits::PATHS,
    path::{Expired, Reached},
    transmit::PathId,
};

impl Connection {
    /// A PATH_CHALLENGE is answered on the path that it came on.
    pub(super) fn on_path_challenge(&mut self, data: [u8; 8]) {
        match self.others.arrival_mut() {
            Some(other) => other.path.probing.on_challenge(data),
            None => self.path.probing.on_challenge(data),
        }
    }

    /// A PATH_RESPONSE counts for the path whose challenge it answers, wherever it came from (RFC 9000, 8.2.3).
    pub(super) fn on_path_response(&mut self, data: [u8; 8], now: Instant) {
        if let Some(reached) = self.path.probing.on_response(data) {
            return self.on_reached(self.path.id, reached, now);
        }
        let found = self.others.iter_mut().find_map(|other| {
            let reached = other.path.probing.on_response(data)?;
            Some((other.path.id, reached))
        });
        if let Some((id, reached)) = found {
            self.on_reached(id, reached, now);
        }
    }

    /// The deadline of what is asked on any path, and of those that were left.
    pub(super) fn paths_deadline(&self) -> Option<Instant> {
        let current = self.path.probing.deadline();
        [current, self.others.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Asks again, or gives up; forgets paths that were left.
    pub(super) fn expire_paths(&mut self, now: Instant) {
        let Self { path, random, .. } = self;
        if path.probing.expire(now, || random.array()) == Expired::Failed {
            self.revert(now);
        }
        let doubt = !self.path.is_validated;
        let last_resort = self.others.last_validated().filter(|_| doubt);
        let mut over = [None; PATHS];
        let Self { others, random, .. } = self;
        for (other, place) in others.iter_mut().zip(&mut over) {
            if other.path.probing.expire(now, || random.array()) == Expired::Failed {
                other.keep_until = Some(now);
            }
            if other.keep_until.is_none_or(|at| at > now) {
                continue;
            }
            other.keep_until = None;
            *place = Some(other.path.id);
        }
        for id in over.into_iter().flatten() {
            let was_wanted = self.others.get_mut(id).is_some_and(|other| {
                other.is_left |= other.is_wanted;
                mem::take(&mut other.is_wanted)
            });
            if was_wanted {
                self.tell_of_path(id, PathNews::Failed);
            }
            if last_resort != Some(id) {
                self.forget_path(id);
            }
        }
    }

    fn on_reached(&mut self, id: PathId, reached: Reached, now: Instant) {
        let Some(path) = self.path_mut(id) else {
            return;
        };
        let is_news = !mem::replace(&mut path.is_validated, true);
        path.validate();
        if reached == Reached::WithLess {
            self.begin_validation(id, now);
        }
        let Some(other) = self.others.get_mut(id) else {
            if is_news {
                self.tell_of_path(id, PathNews::Validated);
                if self.side.is_server() {
                    self.new_token.on_move();
                }
            }
            return self.let_go(now);
        };
        let is_awaited = other.is_awaited;
        if mem::take(&mut other.is_wanted) {
            self.tell_of_path(id, PathNews::Validated);
        }
        if is_awaited && self.switch_to(id) {
            self.on_preferred_in_use();
        }
        self.let_go(now);
    }

    /// The peer can't be reached on the path in use: back to the last one where it could (RFC 9000, 9.3.2).
    fn revert(&mut self, now: Instant) {
        let failed = self.path.id;
        match self.others.last_validated() {
            Some(id) if self.switch_to(id) => {
                self.tell_of_path(failed, PathNews::Failed);
                self.forget_path(failed);
                self.let_go(now);
            }
            // It has a smaller MTU than it should, but there is nothing better.
            _ if self.path.is_validated => {}
            _ => self.abandon(CloseReason::NoPath),
        }
    }
}
