//! Ports that stay ours while a server is down.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket},
    process,
    sync::atomic::{AtomicU16, Ordering},
    time::SystemTime,
};

/// Ports of servers. They and their cluster buses ([`BUS`] higher) lie below 32,768, where Linux
/// begins to give out ports by itself: no outgoing connection takes one while its server restarts.
const FIRST: u16 = 11_000;
const COUNT: u16 = 10_000;

/// A Redis node's cluster bus listens so much above its port.
pub const BUS: u16 = 10_000;

/// A TCP port of loopback, with the port of its cluster bus, that no other user of this kit takes
/// before it is dropped, in any process.
///
/// What marks it as taken is its UDP namesake, bound: the system frees it with the process.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _taken: UdpSocket,
}

impl Port {
    /// Takes a free port.
    ///
    /// # Panics
    /// When there is none.
    pub fn take() -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        // processes begin at different places, so that they seldom meet
        let start = SystemTime::UNIX_EPOCH.elapsed().unwrap().subsec_micros() ^ process::id();
        (0..u32::from(COUNT))
            .map(|_| NEXT.fetch_add(1, Ordering::Relaxed))
            .map(|step| FIRST + ((start + u32::from(step)) % u32::from(COUNT)) as u16)
            .find_map(Self::try_take)
            .expect("no free port")
    }

    fn try_take(number: u16) -> Option<Self> {
        let taken = UdpSocket::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
        let free = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
        (free(number) && free(number + BUS)).then_some(Self {
            number,
            _taken: taken,
        })
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        loopback(self.number)
    }
}

/// A port of this machine.
pub(crate) fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}
