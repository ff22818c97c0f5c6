//! Raw access to one interface: an `AF_PACKET` socket with kernel receive stamps.
//!
//! Unsafe code, as no safe crate offers packet sockets.
#![allow(unsafe_code)]
// The C library's types of constants and fields differ from system call to system call; all values are small.
#![allow(clippy::cast_possible_wrap, clippy::cast_sign_loss)]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;

use rustix::net::netdevice::name_to_index;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use socket2::{Domain, SockAddr, SockAddrStorage, Socket, Type};

use crate::ancillary::{self, Ancillary, Checksum};
use crate::error::StartError;

/// A receive queue for 100 Mbit/s through stalls of 100 ms and more, small frames and their bookkeeping included.
const RECEIVE_QUEUE_BYTES: usize = 16 << 20;
/// Holds the longest frame that a board may see (1518 + VLAN tags), and a bundle of as many TCP segments as a board's
/// receive window takes, with some room more so that longer ones are noticed.
const BUFFER_BYTES: usize = 4096;
const CONTROL_BYTES: usize = 256;
/// Value of an option that is switched on.
const ON: libc::c_int = 1;

/// Packet received from an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedPacket {
    /// The frame without FCS, its VLAN tag put back.
    pub data: Vec<u8>,
    /// `CLOCK_REALTIME` nanoseconds at which the kernel saw it.
    pub stamp_realtime_ns: u64,
    /// Whether the transport checksum is complete.
    pub checksum: Checksum,
    /// Length on the interface; longer than `data` if it did not fit.
    pub interface_bytes: usize,
}

/// Memory for one reception, used again and again.
#[derive(Debug)]
pub struct ReceiveBuffer {
    frame: Box<[u8; BUFFER_BYTES]>,
    control: Box<ControlBuffer>,
}

#[derive(Debug)]
#[repr(C, align(16))]
struct ControlBuffer([u8; CONTROL_BYTES]);

impl ReceiveBuffer {
    /// Creates an empty buffer.
    #[must_use]
    pub fn new() -> Self {
        Self {
            frame: Box::new([0; BUFFER_BYTES]),
            control: Box::new(ControlBuffer([0; CONTROL_BYTES])),
        }
    }
}

impl Default for ReceiveBuffer {
    fn default() -> Self {
        Self::new()
    }
}

/// A packet socket bound to one interface. Ignores what leaves through the interface.
#[derive(Debug)]
pub struct PacketSocket {
    socket: Socket,
    interface: String,
}

impl PacketSocket {
    /// Opens the interface; `owner` says in errors whose it is, such as `board s1`.
    ///
    /// # Errors
    /// No permission, no such interface, interface down, or the kernel refuses an option.
    pub fn open(interface: &str, owner: &str) -> Result<Self, StartError> {
        let opened = Self::open_up_or_down(interface, owner)?;
        let flags = interface_flags(&opened.socket, interface).map_err(|error| {
            StartError::new(format!(
                "interface {interface} of {owner}: cannot read flags: {error}"
            ))
        })?;
        if flags & libc::IFF_UP == 0 {
            return Err(StartError::new(format!(
                "interface {interface} of {owner} is down; set it up first: ip link set {interface} up"
            )));
        }
        Ok(opened)
    }

    /// As [`open`](Self::open), but the interface may be down: the socket works when it is up.
    ///
    /// # Errors
    /// As `open`.
    pub fn open_up_or_down(interface: &str, owner: &str) -> Result<Self, StartError> {
        // Protocol 0 receives nothing until the socket is bound to its interface.
        let socket = Socket::new(Domain::PACKET, Type::RAW, None).map_err(|error| {
            if error.kind() == io::ErrorKind::PermissionDenied {
                StartError::new(
                    "no permission to open raw sockets; run as root or with the capability CAP_NET_RAW",
                )
            } else {
                StartError::new(format!("cannot open a packet socket: {error}"))
            }
        })?;
        let index = name_to_index(&socket, interface).map_err(|_| {
            StartError::new(format!(
                "interface {interface} of {owner} does not exist; create the lab first: loko lab up two-switch"
            ))
        })?;
        let failed = |what: &str, error: io::Error| {
            StartError::new(format!("interface {interface} of {owner}: {what}: {error}"))
        };
        configure(&socket, index).map_err(|error| failed("the kernel refuses an option", error))?;
        bind(&socket, index, libc::ETH_P_ALL as u16)
            .map_err(|error| failed("cannot bind", error))?;
        Ok(Self {
            socket,
            interface: interface.to_owned(),
        })
    }

    /// Returns the name of the interface.
    #[must_use]
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// The next frame if there is one; never waits.
    ///
    /// # Errors
    /// Errors that the interface reports, such as that it went down; the socket stays usable.
    pub fn receive(&self, buffer: &mut ReceiveBuffer) -> io::Result<Option<ReceivedPacket>> {
        let Some((interface_bytes, ancillary)) = self.take(buffer, libc::MSG_TRUNC)? else {
            return Ok(None);
        };
        let data = &buffer.frame[..interface_bytes.min(BUFFER_BYTES)];
        Ok(Some(ReceivedPacket {
            data: with_tag(data, ancillary.tag),
            stamp_realtime_ns: ancillary.stamp_realtime_ns,
            checksum: ancillary.checksum,
            interface_bytes,
        }))
    }

    /// Returns the next thing in a queue of the socket, put into the buffer: its length and what came beside it.
    fn take(
        &self,
        buffer: &mut ReceiveBuffer,
        flags: libc::c_int,
    ) -> io::Result<Option<(usize, Ancillary)>> {
        let mut vector = libc::iovec {
            iov_base: buffer.frame.as_mut_ptr().cast(),
            iov_len: BUFFER_BYTES,
        };
        let mut header = libc::msghdr {
            msg_name: ptr::null_mut(),
            msg_namelen: 0,
            msg_iov: &raw mut vector,
            msg_iovlen: 1,
            msg_control: buffer.control.0.as_mut_ptr().cast(),
            msg_controllen: CONTROL_BYTES,
            msg_flags: 0,
        };
        let flags = flags | libc::MSG_DONTWAIT;
        // SAFETY: header points to a live iovec and to live buffers of the lengths that it states.
        let length = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut header, flags) };
        let Ok(length) = usize::try_from(length) else {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            };
        };
        let messages = header.msg_controllen.min(CONTROL_BYTES);
        Ok(Some((
            length,
            Ancillary::parse(&buffer.control.0[..messages]),
        )))
    }

    /// As [`send`](Self::send), and asks the kernel for a stamp of the departure ([`departure`](Self::departure)).
    ///
    /// # Errors
    /// As `send`.
    pub fn send_stamped(&self, frame: &[u8]) -> io::Result<()> {
        let mut vector = libc::iovec {
            iov_base: frame.as_ptr().cast_mut().cast(),
            iov_len: frame.len(),
        };
        let mut control = ControlBuffer([0; CONTROL_BYTES]);
        let asked = ancillary::message(
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            &libc::SOF_TIMESTAMPING_TX_SOFTWARE.to_ne_bytes(),
        );
        control.0[..asked.len()].copy_from_slice(&asked);
        let header = libc::msghdr {
            msg_name: ptr::null_mut(),
            msg_namelen: 0,
            msg_iov: &raw mut vector,
            msg_iovlen: 1,
            msg_control: control.0.as_mut_ptr().cast(),
            msg_controllen: asked.len(),
            msg_flags: 0,
        };
        // SAFETY: header points to a live iovec, whose data the kernel only reads, and to a live control message.
        let sent = unsafe {
            libc::sendmsg(
                self.socket.as_raw_fd(),
                &raw const header,
                libc::MSG_DONTWAIT,
            )
        };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Returns when the newest frame left that was sent by [`send_stamped`](Self::send_stamped), in `CLOCK_REALTIME`
    /// nanoseconds, or `None` if the kernel has reported no departure since the last call.
    pub fn departure(&self, buffer: &mut ReceiveBuffer) -> Option<u64> {
        let mut newest = None;
        while let Ok(Some((_, ancillary))) = self.take(buffer, libc::MSG_ERRQUEUE) {
            newest = Some(ancillary.stamp_realtime_ns);
        }
        newest.filter(|stamp| *stamp > 0)
    }

    /// Sends a frame without FCS; never waits.
    ///
    /// # Errors
    /// The kernel's error: no memory for it now, interface down or gone.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.socket
            .send_with_flags(frame, libc::MSG_DONTWAIT)
            .map(|_| ())
    }

    /// Returns a watch of this socket's interface for another thread.
    ///
    /// # Errors
    /// No free file descriptor.
    pub fn carrier(&self) -> io::Result<Carrier> {
        Ok(Carrier {
            socket: self.socket.try_clone()?,
            interface: self.interface.clone(),
            bound: name_to_index(&self.socket, &self.interface).ok(),
        })
    }

    /// Returns a reader of this socket's losses for another thread.
    ///
    /// # Errors
    /// No free file descriptor.
    pub fn losses(&self) -> io::Result<Losses> {
        Ok(Losses {
            socket: self.socket.try_clone()?,
            interface: self.interface.clone(),
            lost: 0,
        })
    }
}

/// The link behind an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    /// The interface is up and has a carrier.
    Up,
    /// It is up, and the other end of its cable is not.
    NoCarrier,
    /// It is down.
    Down,
    /// There is no such interface now.
    Gone,
}

/// Watches the interface of a packet socket from another thread, and binds the socket again when an interface of that name
/// comes back.
#[derive(Debug)]
pub struct Carrier {
    socket: Socket,
    interface: String,
    /// Index of the interface that the socket is bound to, while there is one.
    bound: Option<u32>,
}

impl Carrier {
    /// How the link is now.
    pub fn look(&mut self) -> LinkState {
        let index = name_to_index(&self.socket, &self.interface).ok();
        let Some(index) = index.filter(|index| self.is_bound_to(*index)) else {
            return LinkState::Gone;
        };
        self.bound = Some(index);
        match interface_flags(&self.socket, &self.interface) {
            Err(_) => LinkState::Gone,
            Ok(flags) if flags & libc::IFF_UP == 0 => LinkState::Down,
            Ok(flags) if flags & libc::IFF_RUNNING == 0 => LinkState::NoCarrier,
            Ok(_) => LinkState::Up,
        }
    }

    /// Returns whether the socket is bound to the interface with this index, from now on if it was not.
    fn is_bound_to(&mut self, index: u32) -> bool {
        if self.bound == Some(index) {
            return true;
        }
        self.bound = None;
        configure(&self.socket, index).is_ok()
            && bind(&self.socket, index, libc::ETH_P_ALL as u16).is_ok()
    }
}

/// Returns whether an error only means that the interface is down or gone, which [`Carrier`] reports.
#[must_use]
pub fn is_link_down(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV)
    )
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Counts what the kernel dropped because the data thread did not fetch it in time.
#[derive(Debug)]
pub struct Losses {
    socket: Socket,
    interface: String,
    lost: u64,
}

impl Losses {
    /// Returns the name of the interface.
    #[must_use]
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Frames lost since the start.
    pub fn read(&mut self) -> u64 {
        let mut statistics = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes into the value, which has that size.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut length,
            )
        };
        if result == 0 {
            // Reading the kernel's count sets it to zero.
            self.lost += u64::from(statistics.tp_drops);
        }
        self.lost
    }
}

fn interface_flags(socket: &Socket, interface: &str) -> io::Result<libc::c_int> {
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: 0 },
    };
    // The last byte stays zero: the kernel wants a terminated name.
    let room = &mut request.ifr_name[..libc::IFNAMSIZ - 1];
    for (to, from) in room.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: SIOCGIFFLAGS reads the terminated name and writes the flags into the live request.
    let result = unsafe {
        libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCGIFFLAGS as _,
            &raw mut request,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: initialised above as this member of the union, into which the kernel has written; all values are valid.
    Ok(libc::c_int::from(unsafe { request.ifr_ifru.ifru_flags }))
}

fn configure(socket: &Socket, index: u32) -> io::Result<()> {
    set_option(socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &ON)?;
    set_option(socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, &ON)?;
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &ON)?;
    // A stamp of a departure comes without the frame. Such stamps are asked for frame by frame.
    set_option(
        socket,
        libc::SOL_SOCKET,
        libc::SO_TIMESTAMPING,
        &libc::SOF_TIMESTAMPING_OPT_TSONLY,
    )?;
    // Beyond the system's limit with CAP_NET_ADMIN, else up to it.
    if set_socket_recv_buffer_size_force(socket, RECEIVE_QUEUE_BYTES).is_err() {
        socket.set_recv_buffer_size(RECEIVE_QUEUE_BYTES)?;
    }
    let promiscuous = libc::packet_mreq {
        mr_ifindex: index as libc::c_int,
        mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(
        socket,
        libc::SOL_PACKET,
        libc::PACKET_ADD_MEMBERSHIP,
        &promiscuous,
    )
}

/// Sets an option whose value is plain data.
///
/// # Errors
/// The kernel refuses it.
pub fn set_option<T: Copy>(
    socket: &Socket,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the kernel reads the size of T from a live T, and no option of this module makes it follow a pointer there.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// `EtherType` of frames that are for this program alone (IEEE 802).
pub const TYPE_LOCAL_EXPERIMENTAL: [u8; 2] = [0x88, 0xb5];

/// A socket of an interface that only sends.
///
/// # Errors
/// The kernel's error: no permission, no such interface.
pub fn sender(interface: &str) -> io::Result<Socket> {
    let socket = Socket::new(Domain::PACKET, Type::RAW, None)?;
    let index = name_to_index(&socket, interface)?;
    // Protocol 0 receives nothing.
    bind(&socket, index, 0)?;
    Ok(socket)
}

/// Binds a packet socket to an interface, by its index, and a protocol (`EtherType`; 0 receives nothing).
///
/// # Errors
/// The kernel's error: no permission, no such interface.
pub fn bind(socket: &Socket, index: u32, protocol: u16) -> io::Result<()> {
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: sockaddr_ll is one of the kernel's socket addresses, which the storage is made for.
    let address = unsafe { storage.view_as::<libc::sockaddr_ll>() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = index as libc::c_int;
    // SAFETY: the storage holds an initialised sockaddr_ll of that size.
    let address =
        unsafe { SockAddr::new(storage, size_of::<libc::sockaddr_ll>() as libc::socklen_t) };
    socket.bind(&address)
}

/// Both MAC addresses; the VLAN tag follows them.
const ADDRESSES_BYTES: usize = 12;

fn with_tag(data: &[u8], tag: Option<[u8; 4]>) -> Vec<u8> {
    match tag {
        Some(tag) if data.len() >= ADDRESSES_BYTES => {
            let (addresses, rest) = data.split_at(ADDRESSES_BYTES);
            [addresses, &tag, rest].concat()
        }
        _ => data.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_that_the_kernel_took_out_is_put_back() {
        let mut frame = vec![1; 12];
        frame.extend([0x08, 0x00, 0x45]);
        let tagged = with_tag(&frame, Some([0x81, 0x00, 0x00, 0x64]));
        assert_eq!(&tagged[..12], &[1; 12]);
        assert_eq!(&tagged[12..], &[0x81, 0x00, 0x00, 0x64, 0x08, 0x00, 0x45]);
        assert_eq!(with_tag(&frame, None), frame);
        assert_eq!(with_tag(&frame[..3], Some([0x81, 0, 0, 1])), &frame[..3]);
    }
}
