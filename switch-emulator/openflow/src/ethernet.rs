//! Types of frames and protocols that OpenFlow looks into.
#![allow(missing_docs)] // the standard's names

/// Where the type of an untagged frame stands.
pub const TYPE_AT: usize = 12;
/// Lowest value of the type field that is a type and not a length.
pub const FIRST_TYPE: u16 = 0x0600;
/// Type in OpenFlow of 802.3 frames without a SNAP header.
pub const NO_TYPE: u16 = 0x05ff;
/// Header behind the length of frames whose type stands behind it.
pub const SNAP: [u8; 6] = [0xaa, 0xaa, 0x03, 0, 0, 0];
pub const VLAN: u16 = 0x8100;
pub const VLAN_TAG_BYTES: usize = 4;
pub const IPV4: u16 = 0x0800;
pub const ARP: u16 = 0x0806;
pub const IPV6: u16 = 0x86dd;
pub const PBB: u16 = 0x88e7;
pub const MPLS: [u16; 2] = [0x8847, 0x8848];

pub const ICMPV4: u8 = 1;
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
pub const ICMPV6: u8 = 58;
pub const SCTP: u8 = 132;
