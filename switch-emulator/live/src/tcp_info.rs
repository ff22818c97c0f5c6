//! `TCP_INFO` of a connection: how many segments brought the bytes that were read.
//!
//! One system call is unsafe code: no safe crate offers `TCP_INFO` of `tcp(7)`.
#![allow(unsafe_code)]

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::AsRawFd;

use socket2::Socket;

/// Counters of a connection since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Bytes of the stream; the sender's FIN counts as one.
    pub bytes: u64,
    /// Segments with data, as they were sent: those that hardware or the kernel has joined count one by one. A copy of
    /// data that was here already counts too.
    pub segments: u32,
}

impl TcpInfo {
    /// Reads the counters of this connection; they include unread data.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn read(socket: &Socket) -> io::Result<Self> {
        // SAFETY: all members of the structure are numbers.
        let mut counts: libc::tcp_info = unsafe { zeroed() };
        let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes into the value, which has that size.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                (&raw mut counts).cast(),
                &raw mut length,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            bytes: counts.tcpi_bytes_received,
            segments: counts.tcpi_data_segs_in,
        })
    }
}
