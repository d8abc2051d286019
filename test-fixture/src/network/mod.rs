//! A network on virtual time: the same seed and the same parties give the same run, byte for byte.
//!
//! Nodes are numbered by their place in the slice of parties that each step is given. Over a link that does nothing
//! (the default), batches are handed over where they lie, so that a pair can be measured without the simulator.

mod chance;
mod party;
mod link;
mod in_flight;

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use quic_common::{BatchBuffer, BatchHead, Ecn, Random};

pub use chance::Chance;
pub use link::{Link, Passed};
pub use party::{Arrivals, Counted, Party, Route, Transmit};

use in_flight::InFlight;
use link::Direction;

/// How often a party may ask to be called back at once, and then do nothing, before it counts as spinning.
const IDLE_CALLBACKS: u32 = 1000;

/// Nodes, the links between them, and the clock. Empty datagrams don't arrive.
pub struct Network {
    epoch: Instant,
    now: Instant,
    random: Random,
    nodes: Vec<Node>,
    /// From each node to each, in rows by the sender.
    directions: Vec<Direction>,
    filters: Vec<Option<Filter>>,
    /// What a filter makes of a datagram.
    changed: Vec<u8>,
    in_flight: InFlight,
    buffer: BatchBuffer,
    unroutable: u64,
    idle_callbacks: u32,
}

/// Sees each datagram on its way into a link, and may change it. The number counts the link's datagrams from 0.
pub type Filter = Box<dyn FnMut(&mut Vec<u8>, u64) -> Verdict>;

/// What a filter decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It enters the link.
    Pass,
    /// It is lost.
    Drop,
    /// It arrives so much later.
    Hold(Duration),
}

#[derive(Clone, Debug)]
struct Node {
    addresses: Vec<Address>,
    deadline: Option<Instant>,
}

/// One of a node's addresses.
#[derive(Clone, Copy, Debug)]
struct Address {
    /// As the node knows it.
    own: SocketAddr,
    /// As others see it: a NAT may lie between them.
    public: SocketAddr,
}

impl Address {
    const fn new(address: SocketAddr) -> Self {
        Self {
            own: address,
            public: address,
        }
    }
}

impl Node {
    /// What others see as the source of a batch from `local`.
    fn source(&self, local: Option<SocketAddr>) -> SocketAddr {
        let is_meant = |address: &&Address| {
            local.is_some_and(|local| {
                let is_open = local.ip().is_unspecified() && local.port() == address.own.port();
                is_open || local == address.own
            })
        };
        let found = self.addresses.iter().find(is_meant);
        found.unwrap_or(&self.addresses[0]).public
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network")
            .field("elapsed", &self.elapsed())
            .field("nodes", &self.nodes)
            .field("directions", &self.directions)
            .finish_non_exhaustive()
    }
}

impl Network {
    /// Connects nodes with these addresses by links that do nothing.
    #[must_use]
    pub fn new(seed: u64, addresses: &[SocketAddr]) -> Self {
        let epoch = Instant::now();
        let node = |address: &SocketAddr| Node {
            addresses: vec![Address::new(*address)],
            deadline: None,
        };
        let links = addresses.len() * addresses.len();
        let mut seed_bytes = [0; 32];
        seed_bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Self {
            epoch,
            now: epoch,
            random: Random::from_seed(seed_bytes),
            nodes: addresses.iter().map(node).collect(),
            directions: (0..links)
                .map(|_| Direction::new(Link::default(), epoch))
                .collect(),
            filters: (0..links).map(|_| None).collect(),
            changed: Vec::new(),
            in_flight: InFlight::default(),
            buffer: BatchBuffer::new(),
            unroutable: 0,
            idle_callbacks: 0,
        }
    }

    /// The virtual time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// The virtual time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.now - self.epoch
    }

    /// Sets all links.
    pub fn set_links(&mut self, link: Link) {
        for direction in &mut self.directions {
            direction.set_link(link);
        }
    }

    /// Sets the link from one node to another; datagrams on their way are not affected.
    pub fn set_link(&mut self, from: usize, to: usize, link: Link) {
        let at = self.direction(from, to);
        self.directions[at].set_link(link);
    }

    /// Lets `filter` see what enters a link.
    pub fn set_filter(&mut self, from: usize, to: usize, filter: Filter) {
        let at = self.direction(from, to);
        self.filters[at] = Some(filter);
    }

    /// Takes the filter of a link away.
    pub fn clear_filter(&mut self, from: usize, to: usize) {
        let at = self.direction(from, to);
        self.filters[at] = None;
    }

    /// What has happened on a link.
    #[must_use]
    pub fn passed(&self, from: usize, to: usize) -> Passed {
        self.directions[self.direction(from, to)].passed
    }

    /// Datagrams that went to an address without a node.
    #[must_use]
    pub const fn unroutable(&self) -> u64 {
        self.unroutable
    }

    /// The first of the addresses that others see a node at.
    #[must_use]
    pub fn address(&self, node: usize) -> SocketAddr {
        self.nodes[node].addresses[0].public
    }

    /// Has others see a node at another address, as a NAT does that has forgotten it; the node doesn't know. Datagrams to
    /// the old one are lost.
    pub fn rebind(&mut self, node: usize, address: SocketAddr) {
        self.nodes[node].addresses[0].public = address;
    }

    /// Gives a node one more address, over the same links. It sends from there what its batches say is from there.
    pub fn add_address(&mut self, node: usize, address: SocketAddr) {
        self.nodes[node].addresses.push(Address::new(address));
    }

    /// Takes an address from a node. Datagrams to it are lost, and what the node sends from there is sent from the first.
    pub fn remove_address(&mut self, node: usize, address: SocketAddr) {
        self.nodes[node]
            .addresses
            .retain(|known| known.own != address);
    }

    /// Sends a datagram from any address; it arrives now, by no link.
    pub fn inject(&mut self, route: Route, ecn: Ecn, payload: &[u8]) {
        self.in_flight.add(self.now, route, ecn, payload);
    }

    /// Lets time pass without giving anyone a turn.
    pub fn sleep(&mut self, time: Duration) {
        self.now += time;
    }

    /// Gives each party one turn to send; if none does, moves the clock to what comes next. False if nothing comes.
    ///
    /// # Panics
    ///
    /// If a party asks again and again to be called back at once without sending anything.
    pub fn step(&mut self, parties: &mut [&mut dyn Party]) -> bool {
        self.turn(parties)
            || self.next().is_some_and(|next| {
                self.advance(next, parties);
                true
            })
    }

    /// Lets so much time pass.
    pub fn run(&mut self, parties: &mut [&mut dyn Party], time: Duration) {
        let end = self.now + time;
        loop {
            while self.turn(parties) {}
            match self.next() {
                Some(next) if next <= end => self.advance(next, parties),
                _ => break,
            }
        }
        self.now = end;
    }

    /// Gives each party one turn to send, and tells whether any did.
    fn turn(&mut self, parties: &mut [&mut dyn Party]) -> bool {
        let mut has_sent = false;
        for from in 0..parties.len() {
            match parties[from].transmit(self.now, &mut self.buffer) {
                Transmit::Batch(head) => {
                    has_sent = true;
                    self.nodes[from].deadline = Some(self.now);
                    self.forward(from, head, parties);
                }
                Transmit::Callback(time) => {
                    self.nodes[from].deadline = self.now.checked_add(time);
                }
                Transmit::Nothing => self.nodes[from].deadline = None,
            }
        }
        if has_sent {
            self.idle_callbacks = 0;
        }
        has_sent
    }

    /// When the next datagram arrives or the next party wants to be asked, if no party has anything to send.
    fn next(&self) -> Option<Instant> {
        let deadlines = self.nodes.iter().filter_map(|node| node.deadline);
        deadlines.chain(self.in_flight.next_arrival()).min()
    }

    fn advance(&mut self, next: Instant, parties: &mut [&mut dyn Party]) {
        if next > self.now {
            self.now = next;
            self.idle_callbacks = 0;
        } else {
            self.idle_callbacks += 1;
            assert!(
                self.idle_callbacks < IDLE_CALLBACKS,
                "a party spins: {:?}",
                self.nodes
            );
        }
        while let Some(mut flying) = self.in_flight.take(self.now) {
            self.idle_callbacks = 0;
            if let Some((to, own)) = self.node_at(flying.route.destination) {
                let length = flying.bytes.len();
                let route = flying.route.to(own);
                let arrivals = Arrivals::new(route, flying.ecn, length, &mut flying.bytes);
                parties[to].receive(arrivals, self.now);
            } else {
                self.unroutable += 1;
            }
            self.in_flight.recycle(flying.bytes);
        }
    }

    fn forward(&mut self, from: usize, head: BatchHead, parties: &mut [&mut dyn Party]) {
        let Some((to, own)) = self.node_at(head.remote) else {
            self.unroutable += u64::try_from(head.datagrams()).unwrap();
            return;
        };
        let route = Route {
            source: self.nodes[from].source(head.local),
            destination: head.remote,
        };
        let at = self.direction(from, to);
        if !self.directions[at].is_perfect() || self.filters[at].is_some() {
            return self.queue(at, route, head);
        }
        self.directions[at].on_sent(head.datagrams(), head.length);
        let bytes = &mut self.buffer.bytes_mut()[..head.length];
        let arrivals = Arrivals::new(route.to(own), head.ecn, head.segment, bytes);
        parties[to].receive(arrivals, self.now);
    }

    /// Puts the datagrams of the batch in the buffer on their way, one by one.
    fn queue(&mut self, at: usize, route: Route, head: BatchHead) {
        let Self {
            directions,
            filters,
            changed,
            in_flight,
            buffer,
            random,
            now,
            ..
        } = self;
        let direction = &mut directions[at];
        for payload in buffer.batch(head).segments() {
            let number = direction.passed.sent;
            direction.on_sent(1, payload.len());
            changed.clear();
            changed.extend_from_slice(payload);
            let filter = filters[at].as_mut();
            let verdict = filter.map_or(Verdict::Pass, |filter| filter(changed, number));
            let late = match verdict {
                Verdict::Pass => Duration::ZERO,
                Verdict::Hold(time) => time,
                Verdict::Drop => {
                    direction.passed.lost += 1;
                    continue;
                }
            };
            let Some(arrival) = direction.pass(changed.len(), head.ecn, *now, random) else {
                continue;
            };
            if let Some(again) = arrival.again {
                in_flight.add(again, route, arrival.ecn, changed);
            }
            in_flight.add(arrival.at + late, route, arrival.ecn, changed);
            if let Some(bit) = arrival.wrong_bit {
                in_flight.flip(bit);
            }
        }
    }

    /// The node that others see at `address`, and what the node itself calls that.
    fn node_at(&self, address: SocketAddr) -> Option<(usize, SocketAddr)> {
        self.nodes.iter().enumerate().find_map(|(place, node)| {
            let known = node.addresses.iter().find(|a| a.public == address)?;
            Some((place, known.own))
        })
    }

    fn direction(&self, from: usize, to: usize) -> usize {
        assert!(
            from < self.nodes.len() && to < self.nodes.len(),
            "no such node"
        );
        from * self.nodes.len() + to
    }
}

#[cfg(test)]
mod tests;
