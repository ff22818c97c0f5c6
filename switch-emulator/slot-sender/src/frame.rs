//! Layout of the frames: Ethernet, IPv4 without options, UDP, and in its payload flow and sequence number.

use std::net::SocketAddrV4;

use socket2::SockAddr;

/// Ethernet, IPv4 without options, UDP.
pub(crate) const HEADERS_BYTES: usize = 42;
/// Where a frame carries the addresses and ports that a UDP socket needs.
pub(crate) const ADDRESSES_AT: usize = 26;
pub(crate) const PORTS_AT: usize = 34;
/// Where in the UDP payload mgen writes flow, from 1, and sequence number; so frames of both look alike.
pub(crate) const FLOW_AT: usize = 4;
pub(crate) const SEQUENCE_AT: usize = 8;
pub(crate) const PAYLOAD_BYTES: usize = 12;

/// Reads hexadecimal digits, two for each byte. Returns `None` if they are not such.
pub(crate) fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    if digits.len() % 2 != 0 || !digits.is_ascii() {
        return None;
    }
    (0..digits.len())
        .step_by(2)
        .map(|place| u8::from_str_radix(&digits[place..place + 2], 16).ok())
        .collect()
}

/// Returns the address and port that a frame carries at these offsets.
pub(crate) fn socket_address(frame: &[u8], address_at: usize, port_at: usize) -> SockAddr {
    let address: [u8; 4] = std::array::from_fn(|place| frame[address_at + place]);
    let port = u16::from_be_bytes([frame[port_at], frame[port_at + 1]]);
    SocketAddrV4::new(address.into(), port).into()
}
