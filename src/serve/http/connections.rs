//! Open connections of the server, and eviction of idle ones when it is full.
//!
//! A connection is idle while none of its requests is being answered: before its first complete
//! request, and between two. A full server closes the longest idle connection of the peer with the
//! most connections, so that idle clients do not lock others out. A request that is being answered,
//! or an event stream, is never interrupted here. If no connection is idle, the next client waits.
//!
//! Deliberately absent: time. The HTTP library enforces idle timeouts.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use http_body::{Frame, SizeHint};
use tokio::sync::Notify;

/// Connections of a server.
#[derive(Clone)]
pub(super) struct Connections(Arc<Inner>);

struct Inner {
    most: usize,
    open: Mutex<Open>,
    /// Notified when a connection ends or becomes idle.
    changed: Notify,
}

#[derive(Default)]
struct Open {
    /// Event counter, which orders events without a clock.
    tick: u64,
    connections: HashMap<u64, Connection>,
}

struct Connection {
    peer: IpAddr,
    /// Number of requests being answered.
    busy: usize,
    /// Value of `tick` when the connection became idle.
    idle_since: u64,
    /// `true` if the connection has to close.
    ending: bool,
    end: Arc<Notify>,
}

/// Permit for one connection, until it is dropped.
pub(super) struct ConnectionPermit {
    of: Connections,
    id: u64,
    end: Arc<Notify>,
}

/// Request that is being answered, until its answer is sent or abandoned.
pub(super) struct Busy(Arc<ConnectionPermit>);

impl Connections {
    pub(super) fn new(most: usize) -> Self {
        Self(Arc::new(Inner {
            most: most.max(1),
            open: Mutex::default(),
            changed: Notify::new(),
        }))
    }

    /// Waits for a permit for a connection of this peer. Calls `on_eviction` when it closes another
    /// connection for it. Only one caller may wait at a time.
    pub(super) async fn admit(&self, peer: IpAddr, on_eviction: impl Fn()) -> ConnectionPermit {
        loop {
            if let Some(permit) = self.take(peer, &on_eviction) {
                return permit;
            }
            self.0.changed.notified().await;
        }
    }

    fn take(&self, peer: IpAddr, on_eviction: &impl Fn()) -> Option<ConnectionPermit> {
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
        Some(ConnectionPermit {
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

/// Returns the connection to close: the longest idle one of the peer with the most connections.
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

/// Returns the address that a peer is counted by: for IPv6 the network, because one machine has
/// many addresses.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & (u128::MAX << 64)).into(),
        ip @ IpAddr::V4(_) => ip,
    }
}

impl ConnectionPermit {
    /// Resolves when the connection has to close.
    pub(super) async fn ended(&self) {
        self.end.notified().await;
    }

    /// Starts a request.
    pub(super) fn request(self: &Arc<Self>) -> Busy {
        if let Some(connection) = self.of.open().connections.get_mut(&self.id) {
            connection.busy += 1;
        }
        Busy(Arc::clone(self))
    }
}

impl Drop for ConnectionPermit {
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

/// Body of an answer, which keeps its connection busy until it is sent.
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
        let ann: Vec<Arc<ConnectionPermit>> = (0..3).map(|_| take(ANN).unwrap()).collect();
        let is_ending = |permit: &ConnectionPermit| all.open().connections[&permit.id].ending;
        // Bob's connection is older, but Ann has more.
        assert!(take(BOB).is_none());
        assert!(is_ending(&ann[0]) && !is_ending(&bob));
        // One connection is closing already: no other is closed for the same waiting client.
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
        // All connections are busy: the next client waits until one is idle.
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
