//! How a flow's frames get to the network: by UDP sockets, with or without a transmission time, or by a ring.

use std::io;
use std::mem::MaybeUninit;

use live_host::error::StartError;
use live_host::packet_socket::set_option;
use rustix::net::{sendmsg, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use socket2::{Domain, Socket, Type};

use crate::clock::{leap_ns, now, tai_ns};
use crate::config::{FlowConfig, FramePath};
use crate::frame::{socket_address, ADDRESSES_AT, HEADERS_BYTES, PORTS_AT};
use crate::namespace::in_namespace;
use crate::packet_ring::PacketRing;

/// Transmit path of a flow.
#[derive(Debug)]
pub(crate) enum TxPath {
    Socket(Socket),
    Timed(Socket),
    Ring(PacketRing),
}

impl TxPath {
    /// Opens it in the flow's network namespace.
    pub(crate) fn open(
        path: FramePath,
        flow: &FlowConfig,
        frame: &[u8],
    ) -> Result<Self, StartError> {
        in_namespace(flow.namespace.as_deref(), || {
            Self::open_in_current_namespace(path, flow, frame)
        })
    }

    fn open_in_current_namespace(
        path: FramePath,
        flow: &FlowConfig,
        frame: &[u8],
    ) -> Result<Self, StartError> {
        if path == FramePath::PacketRing {
            return PacketRing::sending(&flow.source).map(Self::Ring);
        }
        let local = socket_address(frame, ADDRESSES_AT, PORTS_AT);
        let remote = socket_address(frame, ADDRESSES_AT + 4, PORTS_AT + 2);
        let open = || -> io::Result<Socket> {
            let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
            socket.bind_device(Some(flow.source.as_bytes()))?;
            socket.bind(&local)?;
            socket.connect(&remote)?;
            if path == FramePath::TimedSockets {
                // struct sock_txtime: the clock, and no flags.
                set_option(
                    &socket,
                    libc::SOL_SOCKET,
                    libc::SO_TXTIME,
                    &[libc::CLOCK_TAI, 0],
                )?;
            }
            Ok(socket)
        };
        let way = match path {
            FramePath::TimedSockets => Self::Timed,
            _ => Self::Socket,
        };
        open().map(way).map_err(|error| {
            StartError::new(format!(
                "interface {}: no UDP socket: {error}; give the interface the frame's address first",
                flow.source
            ))
        })
    }

    pub(crate) fn send(&mut self, frame: &[u8], due: u64) -> io::Result<()> {
        match self {
            Self::Timed(socket) => {
                let ahead_ns = leap_ns(tai_ns(), now().as_nanos());
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(TxTime(1))];
                let mut control = SendAncillaryBuffer::new(&mut space);
                control.push(SendAncillaryMessage::TxTime(due + ahead_ns));
                let payload = [io::IoSlice::new(&frame[HEADERS_BYTES..])];
                sendmsg(socket, &payload, &mut control, SendFlags::DONTWAIT)?;
                Ok(())
            }
            Self::Socket(socket) => socket.send(&frame[HEADERS_BYTES..]).map(|_| ()),
            Self::Ring(ring) => ring.send(frame),
        }
    }
}
