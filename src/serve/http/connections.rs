//! The connections that are open, and which of them ends where there is no room for one more.
//!
//! A connection is idle while no request of it is being answered: before its first one is whole, and
//! between two. Where all seats are taken, the longest idle one of the peer that has most of them is
//! cut off, so that nobody who merely holds connections keeps others out. A request that is being
//! answered, streams of events included, is never cut off here; where nothing is idle, the next one waits.
//!
//! Deliberately absent: time. How long a connection may be idle is the HTTP library's to enforce.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use http_body::{Frame, SizeHint};
use tokio::sync::Notify;

/// The connections of a server.
#[derive(Clone)]
pub(super) struct Connections(Arc<Inner>);

struct Inner {
    most: usize,
    open: Mutex<Open>,
    /// Told when a connection ends or becomes idle.
    changed: Notify,
}

#[derive(Default)]
struct Open {
    /// Counts everything that happens, so that the older of two is known without a clock.
    tick: u64,
    connections: HashMap<u64, Connection>,
}

struct Connection {
    peer: IpAddr,
    /// How many requests of it are being answered.
    busy: usize,
    /// Since when none is.
    idle_since: u64,
    /// Whether it has been told to end.
    ending: bool,
    end: Arc<Notify>,
}

/// The right to a connection, as long as it is kept.
pub(super) struct Seat {
    of: Connections,
    id: u64,
    end: Arc<Notify>,
}

/// A request that is being answered, until its answer is sent or given up.
pub(super) struct Busy(Arc<Seat>);

impl Connections {
    pub(super) fn new(most: usize) -> Self {
        Self(Arc::new(Inner {
            most: most.max(1),
            open: Mutex::default(),
            changed: Notify::new(),
        }))
    }

    /// A seat for a connection of this peer, as soon as there is one. `on_eviction` is called where
    /// another connection has to end for it. Only one may wait at a time.
    pub(super) async fn admit(&self, peer: IpAddr, on_eviction: impl Fn()) -> Seat {
        loop {
            if let Some(seat) = self.take(peer, &on_eviction) {
                return seat;
            }
            self.0.changed.notified().await;
        }
    }

    fn take(&self, peer: IpAddr, on_eviction: &impl Fn()) -> Option<Seat> {
        let mut open = self.open();
        let ending = open.connections.values().filter(|one| one.ending).count();
        let is_full = open.connections.len() >= self.0.most;
        if is_full && open.connections.len() - ending >= self.0.most {
            let id = longest_idle(&open.connections)?;
            let connection = open.connections.get_mut(&id)?;
            connection.ending = true;
            connection.end.notify_one();
            on_eviction();
        }
        if is_full {
            return None;
        }
        let id = open.next();
        let end = Arc::new(Notify::new());
        let connection = Connection {
            peer: network(peer),
            busy: 0,
            idle_since: id,
            ending: false,
            end: Arc::clone(&end),
        };
        open.connections.insert(id, connection);
        Some(Seat {
            of: self.clone(),
            id,
            end,
        })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn next(&mut self) -> u64 {
        self.tick += 1;
        self.tick
    }
}

/// The connection that goes first: of the peer that has most of them, the one that is idle longest.
fn longest_idle(connections: &HashMap<u64, Connection>) -> Option<u64> {
    let mut of_peer: HashMap<IpAddr, usize> = HashMap::new();
    for connection in connections.values() {
        *of_peer.entry(connection.peer).or_default() += 1;
    }
    let idle = connections
        .iter()
        .filter(|(_, one)| one.busy == 0 && !one.ending);
    let first = idle.max_by_key(|(_, one)| {
        let number = of_peer.get(&one.peer).copied().unwrap_or_default();
        (number, std::cmp::Reverse(one.idle_since))
    });
    first.map(|(id, _)| *id)
}

/// A peer as it is counted: of version 6 the network, since one machine has many addresses there.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & (u128::MAX << 64)).into(),
        ip @ IpAddr::V4(_) => ip,
    }
}

impl Seat {
    /// Ends when the connection has to.
    pub(super) async fn ended(&self) {
        self.end.notified().await;
    }

    /// Begins a request.
    pub(super) fn request(self: &Arc<Self>) -> Busy {
        if let Some(connection) = self.of.open().connections.get_mut(&self.id) {
            connection.busy += 1;
        }
        Busy(Arc::clone(self))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.of.open().connections.remove(&self.id);
        self.of.0.changed.notify_one();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut open = self.0.of.open();
        let tick = open.next();
        if let Some(connection) = open.connections.get_mut(&self.0.id) {
            connection.busy = connection.busy.saturating_sub(1);
            connection.idle_since = tick;
        }
        drop(open);
        self.0.of.0.changed.notify_one();
    }
}

/// The body of an answer, which keeps its connection busy until all of it is taken.
pub(super) struct Answer {
    pub(super) body: Body,
    pub(super) _busy: Busy,
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const ANN: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const BOB: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    #[test]
    fn the_longest_idle_of_whoever_has_most_goes_and_no_request_does() {
        let all = Connections::new(4);
        let evictions = Cell::new(0);
        let on_eviction = || evictions.set(evictions.get() + 1);
        let take = |peer| all.take(peer, &on_eviction).map(Arc::new);
        let bob = take(BOB).unwrap();
        let ann: Vec<Arc<Seat>> = (0..3).map(|_| take(ANN).unwrap()).collect();
        let is_ending = |seat: &Seat| all.open().connections[&seat.id].ending;
        // Bob's is older, and Ann has more.
        assert!(take(BOB).is_none());
        assert!(is_ending(&ann[0]) && !is_ending(&bob));
        // One has been told already: nobody else has to go for the one that waits.
        assert!(take(BOB).is_none());
        assert_eq!(evictions.get(), 1);
        let mut ann = ann.into_iter();
        drop(ann.next());
        let newest = take(ANN).unwrap();
        let (second, third) = (ann.next().unwrap(), ann.next().unwrap());
        let busy = second.request();
        assert!(take(BOB).is_none());
        assert!(is_ending(&third) && !is_ending(&second));
        drop(third);
        let last = take(BOB).unwrap();
        let requests = [newest.request(), bob.request(), last.request()];
        // Everybody is at work: the next one waits, until somebody is not.
        assert!(take(BOB).is_none());
        assert_eq!(evictions.get(), 2);
        drop(busy);
        assert!(take(BOB).is_none());
        assert!(is_ending(&second));
        drop((requests, second));
        assert!(take(BOB).is_some());
    }

    #[test]
    fn a_machine_with_many_addresses_is_one_peer() {
        let check = |a: &str, b: &str, same: bool| {
            let network = |text: &str| network(text.parse().unwrap());
            assert_eq!(network(a) == network(b), same, "{a} {b}");
        };
        check("2001:db8::1", "2001:db8::ffff:1", true);
        check("2001:db8::1", "2001:db8:0:1::1", false);
        check("::ffff:192.0.2.1", "192.0.2.1", true);
        check("192.0.2.1", "192.0.2.2", false);
    }
}
