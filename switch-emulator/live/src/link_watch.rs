//! Link state of the data ports, from the carriers of their interfaces.
//!
//! Netlink signals a change; then every interface is asked for its state. So nothing is missed when many changes come
//! at once.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, Receiver, Sender};

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{bind, recv, socket_with, AddressFamily, RecvFlags, SocketFlags, SocketType};

use crate::config::PortAddress;
use crate::pending_flag::PendingFlag;
use live_host::packet_socket::{Carrier, LinkState};

/// Changes of interfaces (`RTMGRP_LINK`).
const LINK_GROUP: u32 = 1;

/// The link of a data port has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkChange {
    /// Whose.
    pub address: PortAddress,
    /// New state.
    pub link: LinkState,
}

/// Looks after the links of all data ports.
#[derive(Debug)]
pub struct LinkWatch {
    changes: OwnedFd,
    ports: Vec<WatchedPort>,
    sender: Sender<LinkChange>,
    pending: PendingFlag,
}

#[derive(Debug)]
struct WatchedPort {
    address: PortAddress,
    carrier: Carrier,
    link: LinkState,
}

impl LinkWatch {
    /// Watches these ports, all of which count as up at first. Changes come from the receiver; `pending` is set when
    /// there are any.
    ///
    /// # Errors
    /// The kernel refuses the netlink socket.
    pub fn new(
        ports: Vec<(PortAddress, Carrier)>,
        pending: PendingFlag,
    ) -> io::Result<(Self, Receiver<LinkChange>)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // Without a protocol given, it is NETLINK_ROUTE.
        let changes = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&changes, &SocketAddrNetlink::new(0, LINK_GROUP))?;
        let (sender, receiver) = mpsc::channel();
        let ports = ports.into_iter().map(|(address, carrier)| WatchedPort {
            address,
            carrier,
            link: LinkState::Up,
        });
        let mut watch = Self {
            changes,
            ports: ports.collect(),
            sender,
            pending,
        };
        watch.look_at_all();
        Ok((watch, receiver))
    }

    /// Looks at the links if something has changed since the last call. Never waits.
    pub fn look(&mut self) {
        if self.has_changes() {
            self.look_at_all();
        }
    }

    /// Takes all messages of the kernel, and returns whether there was any, or more than the kernel could keep.
    fn has_changes(&self) -> bool {
        let mut any = false;
        let mut message = [0; 8_192];
        loop {
            match recv(&self.changes, &mut message, RecvFlags::DONTWAIT) {
                Ok(_) | Err(Errno::NOBUFS) => any = true,
                Err(Errno::INTR) => {}
                Err(_) => return any,
            }
        }
    }

    fn look_at_all(&mut self) {
        let mut any = false;
        for port in &mut self.ports {
            let link = port.carrier.look();
            if link != port.link {
                port.link = link;
                any = true;
                // The data thread has ended: then nobody cares.
                let _ = self.sender.send(LinkChange {
                    address: port.address,
                    link,
                });
            }
        }
        if any {
            self.pending.set();
        }
    }
}
