//! Frames in memory that the kernel shares: a ring of an `AF_PACKET` socket (`PACKET_MMAP`), to send or to receive.
//!
//! Sent frames bypass queueing disciplines, and received frames are read without a system call.
#![allow(unsafe_code)]
// The C library's types of constants differ from system call to system call; all values are small.
#![allow(clippy::cast_possible_wrap, clippy::cast_sign_loss)]

use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use live_host::error::StartError;
use live_host::packet_socket::{bind, set_option};
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use rustix::net::netdevice::name_to_index;
use socket2::{Domain, Socket, Type};

/// Size of a place in the ring: for the kernel's header and the longest frame of a host.
const SLOT_BYTES: usize = 2048;
const BLOCK_BYTES: usize = 65_536;
const BLOCKS: usize = 16;
const SLOTS: usize = BLOCK_BYTES * BLOCKS / SLOT_BYTES;
/// Where a frame to be sent lies in its place: behind `struct tpacket2_hdr`, aligned.
const SENT_AT: usize = 32;
/// Where `struct tpacket2_hdr` has the frame's length and, for a received frame, how much was captured and where it lies.
const LENGTH_AT: usize = 4;
const CAPTURED_AT: usize = 8;
const MAC_AT: usize = 12;
const ON: libc::c_int = 1;

/// One direction of one interface.
#[derive(Debug)]
pub(crate) struct PacketRing {
    socket: Socket,
    memory: NonNull<u8>,
    next: usize,
}

// SAFETY: only this value and the kernel use the memory; atomic words in it settle whose turn it is.
unsafe impl Send for PacketRing {}

impl PacketRing {
    /// A ring for what leaves by an interface.
    ///
    /// # Errors
    /// No permission, no such interface, or the kernel refuses an option.
    pub(crate) fn sending(interface: &str) -> Result<Self, StartError> {
        Self::open(interface, libc::PACKET_TX_RING, 0)
    }

    /// A ring for what comes to an interface.
    ///
    /// # Errors
    /// As [`sending`](Self::sending).
    pub(crate) fn receiving(interface: &str) -> Result<Self, StartError> {
        Self::open(interface, libc::PACKET_RX_RING, libc::ETH_P_IP as u16)
    }

    fn open(interface: &str, kind: libc::c_int, protocol: u16) -> Result<Self, StartError> {
        let failed = |error: io::Error| {
            StartError::new(format!(
                "interface {interface}: no packet ring: {error}; run as root, and create the interface first"
            ))
        };
        let socket = Socket::new(Domain::PACKET, Type::RAW, None).map_err(failed)?;
        let index = name_to_index(&socket, interface).map_err(|error| failed(error.into()))?;
        let options = [
            (
                libc::PACKET_VERSION,
                libc::tpacket_versions::TPACKET_V2 as libc::c_int,
            ),
            (libc::PACKET_IGNORE_OUTGOING, ON),
            (libc::PACKET_QDISC_BYPASS, ON),
        ];
        for (name, value) in options {
            set_option(&socket, libc::SOL_PACKET, name, &value).map_err(failed)?;
        }
        let ring = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: SLOT_BYTES as u32,
            tp_frame_nr: SLOTS as u32,
        };
        set_option(&socket, libc::SOL_PACKET, kind, &ring).map_err(failed)?;
        let (length, protection) = (BLOCK_BYTES * BLOCKS, ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: a new mapping at an address of the kernel's choice; it is removed only by drop().
        let memory = unsafe {
            mmap(
                ptr::null_mut(),
                length,
                protection,
                MapFlags::SHARED,
                &socket,
                0,
            )
        }
        .map_err(|error| failed(error.into()))?;
        let memory = NonNull::new(memory.cast())
            .ok_or_else(|| failed(io::ErrorKind::AddrNotAvailable.into()))?;
        let ring = Self {
            socket,
            memory,
            next: 0,
        };
        bind(&ring.socket, index, protocol).map_err(failed)?;
        Ok(ring)
    }

    /// Sends a frame, without FCS, of at most 2016 bytes; never waits.
    ///
    /// # Errors
    /// The ring is full, the frame too long, or what the interface reports.
    pub(crate) fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        if frame.len() > SLOT_BYTES - SENT_AT {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if self.status().load(Ordering::Acquire) != libc::TP_STATUS_AVAILABLE {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.write(LENGTH_AT, &(frame.len() as u32).to_ne_bytes());
        self.write(SENT_AT, frame);
        self.status()
            .store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        self.next = (self.next + 1) % SLOTS;
        // SAFETY: no bytes are given; the kernel takes what is marked in the ring.
        let sent =
            unsafe { libc::send(self.socket.as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Returns the next frame that came, if there is one, in place of what `frame` holds; never waits.
    pub(crate) fn receive(&mut self, frame: &mut Vec<u8>) -> bool {
        if self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return false;
        }
        let captured = u32::from_ne_bytes(self.read(CAPTURED_AT)) as usize;
        let mac = usize::from(u16::from_ne_bytes(self.read(MAC_AT)));
        let captured = captured.min(SLOT_BYTES.saturating_sub(mac));
        frame.clear();
        frame.reserve(captured);
        for slot in 0..captured {
            frame.extend(self.read::<1>(mac + slot));
        }
        self.status()
            .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % SLOTS;
        true
    }

    /// Returns the status word of the next slot: whose turn it is.
    fn status(&self) -> &AtomicU32 {
        let slot = self.at(0).cast::<u32>();
        // SAFETY: a live, aligned word of the ring, which both sides change as a whole.
        unsafe { AtomicU32::from_ptr(slot.as_ptr()) }
    }

    fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < SLOT_BYTES);
        // SAFETY: `next` is below PLACES, so the sum lies in the mapping.
        unsafe { self.memory.add(self.next * SLOT_BYTES + offset) }
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= SLOT_BYTES);
        let to = self.at(offset).as_ptr();
        // SAFETY: both are live, at least this long, and do not overlap; it is our turn.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) }
    }

    fn read<const N: usize>(&self, offset: usize) -> [u8; N] {
        assert!(offset + N <= SLOT_BYTES);
        let from = self.at(offset).cast::<[u8; N]>().as_ptr();
        // SAFETY: N bytes of the mapping, for which all values are valid; it is our turn.
        unsafe { ptr::read_unaligned(from) }
    }
}

impl Drop for PacketRing {
    fn drop(&mut self) {
        // SAFETY: made by open() with this length, and nothing refers to it any more.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), BLOCK_BYTES * BLOCKS) };
    }
}

const _: () = assert!(size_of::<libc::tpacket2_hdr>() == SENT_AT);
