//! Rewriting of frames by actions (quirks 159 to 165).

use super::header::{is_mpls, is_vlan, Header};
use crate::actions::update_checksums;
use openflow::bytes::be16;
use openflow::ethernet::{ARP, IPV4, TYPE_AT, VLAN_TAG_BYTES};
use openflow::v1_3::field;

/// Type and label entry.
const MPLS_BYTES: usize = 6;
/// Length of the IP header that is taken for granted in front of TCP and UDP ports.
const PLAIN_IP_BYTES: usize = 20;

/// A frame and what is remembered of it, while actions are performed.
#[derive(Debug)]
pub(super) struct Rewriter13<'a> {
    pub(super) frame: &'a mut Vec<u8>,
    pub(super) header: &'a mut Header,
    /// Checksums have to be computed again before the frame is sent.
    pub(super) checksums_due: bool,
}

impl Rewriter13<'_> {
    fn byte(&self, at: usize) -> u8 {
        self.frame.get(at).copied().unwrap_or(0)
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(target) = self.frame.get_mut(at..at + bytes.len()) {
            target.copy_from_slice(bytes);
        }
    }

    fn insert(&mut self, at: usize, bytes: &[u8]) {
        let at = at.min(self.frame.len());
        self.frame.splice(at..at, bytes.iter().copied());
    }

    fn cut(&mut self, at: usize, count: usize) {
        let end = (at + count).min(self.frame.len());
        self.frame.drain(at.min(end)..end);
    }

    /// Computes what is due before the frame leaves.
    pub(super) fn settle_checksums(&mut self) {
        if self.checksums_due {
            self.checksums_due = false;
            update_checksums(self.frame, self.header.payload);
        }
    }

    pub(super) fn push_vlan(&mut self, eth_type: u16) {
        let control = if self.header.tagged {
            be16(self.frame, 14)
        } else {
            0
        };
        let tag = [eth_type.to_be_bytes(), control.to_be_bytes()].concat();
        self.insert(TYPE_AT, &tag);
        self.header.tagged = true;
        self.header.payload += VLAN_TAG_BYTES;
    }

    pub(super) fn pop_vlan(&mut self) {
        if self.header.tagged {
            self.cut(TYPE_AT, VLAN_TAG_BYTES);
            self.header.payload = self.header.payload.saturating_sub(VLAN_TAG_BYTES);
            self.header.tagged = is_vlan(be16(self.frame, TYPE_AT));
        }
    }

    /// The type of what was in the frame stays behind the label entry (quirk 160).
    pub(super) fn push_mpls(&mut self, eth_type: u16) {
        let at = self.header.payload.saturating_sub(2);
        let entry = if is_mpls(self.header.eth_type) {
            let mut entry: [u8; 4] = core::array::from_fn(|i| self.byte(self.header.payload + i));
            entry[2] &= !1;
            entry
        } else {
            let ttl = if self.header.eth_type == IPV4 {
                self.byte(self.header.payload + 8)
            } else {
                0
            };
            [0, 0, 1, ttl]
        };
        let [high, low] = eth_type.to_be_bytes();
        self.insert(at, &[high, low, entry[0], entry[1], entry[2], entry[3]]);
        self.header.mpls = true;
        self.header.eth_type = eth_type;
        self.header.payload += MPLS_BYTES;
    }

    pub(super) fn pop_mpls(&mut self) {
        if self.header.mpls {
            self.cut(TYPE_AT, MPLS_BYTES);
            *self.header = Header::parse(self.frame, self.header.in_port);
        }
    }

    pub(super) fn set_mpls_ttl(&mut self, ttl: u8) {
        if self.header.mpls {
            self.put(17, &[ttl]);
        }
    }

    pub(super) fn set_field(&mut self, number: u8, value: [u8; 6]) {
        let ip = self.header.payload;
        let is_ip = self.header.eth_type == IPV4;
        let half = [value[0], value[1]];
        let word = [value[0], value[1], value[2], value[3]];
        match number {
            field::ETH_DST => self.put(0, &value),
            field::ETH_SRC => self.put(6, &value),
            field::ETH_TYPE => {
                self.put(ip.saturating_sub(2), &half);
                self.header.eth_type = u16::from_be_bytes(half);
            }
            field::VLAN_VID if self.header.tagged => {
                let vid = u16::from_be_bytes(half) & 0x0fff;
                let control = be16(self.frame, 14) & 0xf000 | vid;
                self.put(14, &control.to_be_bytes());
                self.header.vid = vid;
            }
            field::VLAN_PCP if self.header.tagged => {
                let kept = self.byte(14) & 0x0f;
                self.put(14, &[value[0] << 5 | kept]);
            }
            field::IP_DSCP if is_ip => {
                let kept = self.byte(ip + 1) & 0x03;
                self.put_ip(1, &[value[0] << 2 | kept]);
            }
            field::IP_ECN if is_ip => {
                let kept = self.byte(ip + 1) & 0xfc;
                self.put_ip(1, &[kept | value[0] & 3]);
            }
            field::IP_PROTO if is_ip => {
                self.put_ip(9, &value[..1]);
                self.header.ip_proto = value[0];
            }
            field::IPV4_SRC if is_ip => {
                self.put_ip(12, &word);
                self.header.source = u32::from_be_bytes(word);
            }
            field::IPV4_DST if is_ip => {
                self.put_ip(16, &word);
                self.header.destination = u32::from_be_bytes(word);
            }
            field::TCP_SRC | field::UDP_SRC if self.carries(number) => {
                self.put_ip(PLAIN_IP_BYTES, &half);
                self.header.source_port = u16::from_be_bytes(half);
            }
            field::TCP_DST | field::UDP_DST if self.carries(number) => {
                self.put_ip(PLAIN_IP_BYTES + 2, &half);
                self.header.destination_port = u16::from_be_bytes(half);
            }
            field::ICMPV4_TYPE | field::ICMPV4_CODE if is_ip && self.header.ip_proto == 1 => {
                let header = usize::from(self.byte(ip) & 0x0f) * 4;
                self.put_ip(
                    header + usize::from(number - field::ICMPV4_TYPE),
                    &value[..1],
                );
            }
            field::ARP_OP..=field::ARP_THA if self.header.eth_type == ARP => match number {
                field::ARP_OP => self.put(ip + 6, &half),
                field::ARP_SHA => self.put(ip + 8, &value),
                field::ARP_SPA => self.put(ip + 14, &word),
                field::ARP_THA => self.put(ip + 18, &value),
                _ => self.put(ip + 24, &word),
            },
            field::MPLS_LABEL..=field::MPLS_BOS if is_mpls(self.header.eth_type) => {
                self.set_mpls(number, word);
            }
            _ => {}
        }
    }

    /// Returns whether the frame is of the protocol of a port field.
    const fn carries(&self, number: u8) -> bool {
        let protocol = match number {
            field::TCP_SRC | field::TCP_DST => 6,
            _ => 17,
        };
        self.header.eth_type == IPV4 && self.header.ip_proto == protocol
    }

    fn put_ip(&mut self, offset: usize, bytes: &[u8]) {
        self.put(self.header.payload + offset, bytes);
        self.checksums_due = true;
    }

    /// Bits are added to what stands at fixed places, or too many are cleared (quirk 162).
    fn set_mpls(&mut self, number: u8, value: [u8; 4]) {
        match number {
            field::MPLS_LABEL => {
                let label = u32::from_be_bytes(value);
                let low = self.byte(16) | (label << 4) as u8;
                self.put(14, &[(label >> 12) as u8, (label >> 4) as u8, low]);
                self.header.mpls_label = label;
            }
            field::MPLS_TC => {
                let byte = self.byte(16) | value[0] << 1;
                self.put(16, &[byte]);
                self.header.mpls_tc = value[0];
            }
            _ => {
                let byte = if value[0] & 1 == 1 {
                    self.byte(16) | 1
                } else {
                    0
                };
                self.put(16, &[byte]);
                self.header.mpls_bos = value[0];
            }
        }
    }
}
