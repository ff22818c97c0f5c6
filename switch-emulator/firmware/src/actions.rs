//! Actions of OpenFlow 1.0 as the firmware performs them.

use crate::port::PortMask;
use openflow::bytes::be16;
use openflow::v1_0::{action, port, Rewrite};

/// Action slots of an entry.
pub(crate) const SLOTS: usize = 4;
/// Size of a slot.
pub(crate) const SLOT_BYTES: usize = 16;

/// One action, read from its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// To the port with this number, unless the frame came from there.
    Output(u16),
    OutputToIngress,
    /// To all ports that are not native, except the ingress port.
    Flood,
    /// On the board the same as FLOOD; with the specification, also to ports that are not flooded.
    All,
    OutputToController {
        max_bytes: u16,
    },
    /// Of a `PACKET_OUT`, to the entry that matches; of the specification only.
    OutputToTable,
    Rewrite(Rewrite),
    /// Unknown to the firmware, or an output to nowhere.
    Nothing,
}

impl Action {
    /// Reads a slot; an empty one holds no action.
    fn read(slot: &[u8; SLOT_BYTES]) -> Option<Self> {
        if be16(slot, 2) == 0 {
            return None;
        }
        Some(match be16(slot, 0) {
            action::OUTPUT => match be16(slot, 4) {
                port @ 0..=255 => Self::Output(port),
                port::IN_PORT => Self::OutputToIngress,
                port::FLOOD => Self::Flood,
                port::ALL => Self::All,
                port::CONTROLLER => Self::OutputToController {
                    max_bytes: be16(slot, 6),
                },
                port::TABLE => Self::OutputToTable,
                _ => Self::Nothing,
            },
            _ => Rewrite::read(slot).map_or(Self::Nothing, Self::Rewrite),
        })
    }
}

/// The actions of an entry, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Actions {
    slots: [Action; SLOTS],
    count: usize,
}

impl Actions {
    /// Reads the four slots of an entry. An entry whose first slot is empty drops; other empty slots are passed over.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let mut actions = Self {
            slots: [Action::Nothing; SLOTS],
            count: 0,
        };
        for (index, slot) in bytes.chunks_exact(SLOT_BYTES).take(SLOTS).enumerate() {
            let slot = slot.try_into().unwrap_or(&[0; SLOT_BYTES]);
            match Action::read(slot) {
                Some(action) => {
                    actions.slots[actions.count] = action;
                    actions.count += 1;
                }
                None if index == 0 => break,
                None => {}
            }
        }
        actions
    }

    /// The port that a lone action sends to by its number.
    pub(crate) fn only_output(&self) -> Option<u16> {
        match self.slots[..self.count] {
            [Action::Output(port)] => Some(port),
            _ => None,
        }
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = Action> + '_ {
        self.slots[..self.count].iter().copied()
    }
}

/// Bits of a tail tag that send a frame to the port with this number: the low 8 bits of `1 << (port - 1)`.
pub(crate) const fn tail_tag(port: u16) -> u8 {
    match port {
        1..=8 => 1 << (port - 1),
        _ => 0,
    }
}

/// Where an action sends the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Ports(PortMask),
    Controller { max_bytes: u16 },
    Table,
}

/// A frame while its actions are performed.
#[derive(Debug)]
pub(crate) struct Rewriter<'a> {
    pub(crate) frame: &'a mut Vec<u8>,
    /// The port by which the frame came in; the firmware looks only at the low byte of its number here.
    ingress: u16,
    /// Whether the frame had a tag when the search began; it is not looked at again after tag changes.
    pub(crate) tagged: bool,
    /// Ports that FLOOD reaches, and those that ALL reaches.
    flooded: PortMask,
    all: PortMask,
    /// Whether fields are changed as the specification asks.
    spec: bool,
    /// VLAN identifier set by an earlier action.
    vlan_vid: u16,
}

impl<'a> Rewriter<'a> {
    pub(crate) fn new(
        frame: &'a mut Vec<u8>,
        in_port: u16,
        tagged: bool,
        flooded: PortMask,
        all: PortMask,
        spec: bool,
    ) -> Self {
        Self {
            frame,
            ingress: if spec { in_port } else { in_port & 0xff },
            tagged,
            flooded,
            all,
            spec,
            vlan_vid: 0,
        }
    }

    /// Performs one action on the frame. Returns where to send the frame in its present form, if anywhere.
    pub(crate) fn perform(&mut self, action: Action) -> Option<Destination> {
        match action {
            Action::Output(port) if port == self.ingress => {}
            Action::Output(port) => {
                return Some(Destination::Ports(PortMask::from_bits(tail_tag(port))))
            }
            Action::OutputToIngress => {
                return Some(Destination::Ports(PortMask::from_bits(tail_tag(
                    self.ingress,
                ))))
            }
            Action::Flood => return Some(self.all_but_ingress(self.flooded)),
            Action::All => return Some(self.all_but_ingress(self.all)),
            Action::OutputToController { max_bytes } => {
                return Some(Destination::Controller { max_bytes })
            }
            Action::OutputToTable => return Some(Destination::Table),
            Action::Rewrite(rewrite) if self.spec => rewrite.apply(self.frame),
            Action::Rewrite(rewrite) => self.rewrite(rewrite),
            Action::Nothing => {}
        }
        None
    }

    /// Changes the frame as the firmware does.
    fn rewrite(&mut self, rewrite: Rewrite) {
        let ip = if self.tagged { 18 } else { 14 };
        match rewrite {
            Rewrite::SetVlanVid(vid) => {
                self.vlan_vid = if vid == 0xffff { 0 } else { vid & 0x0fff };
                self.set_vlan(self.vlan_vid);
            }
            Rewrite::SetVlanPcp(pcp) => {
                let vid = if self.tagged { self.vlan_vid } else { 0 };
                self.set_vlan(u16::from(pcp & 7) << 13 | vid);
            }
            Rewrite::StripVlan if self.tagged && self.frame.len() >= 16 => {
                self.frame.drain(12..16);
            }
            Rewrite::SetDlSrc(address) => self.put(6, &address),
            Rewrite::SetDlDst(address) => self.put(0, &address),
            Rewrite::SetNwSrc(address) => self.put_checksummed(ip, 12, &address),
            Rewrite::SetNwDst(address) => self.put_checksummed(ip, 16, &address),
            Rewrite::SetNwTos(tos) => self.put_checksummed(ip, 1, &[tos]),
            Rewrite::SetTpSrc(port) => self.put_checksummed(ip, 20, &port),
            Rewrite::SetTpDst(port) => self.put(ip + 22, &port),
            Rewrite::StripVlan => {}
        }
    }

    const fn all_but_ingress(&self, ports: PortMask) -> Destination {
        let ingress = tail_tag(self.ingress);
        Destination::Ports(PortMask::from_bits(ports.bits() & !ingress))
    }

    /// Writes the tag control field: into the tag, or with a new tag in front of the type field.
    fn set_vlan(&mut self, control: u16) {
        let [high, low] = control.to_be_bytes();
        if self.tagged {
            self.put(14, &[high, low]);
        } else if self.frame.len() >= 12 {
            self.frame.splice(12..12, [0x81, 0x00, high, low]);
        }
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(target) = self.frame.get_mut(at..at + bytes.len()) {
            target.copy_from_slice(bytes);
        }
    }

    fn put_checksummed(&mut self, ip: usize, offset: usize, bytes: &[u8]) {
        self.put(ip + offset, bytes);
        update_checksums(self.frame, ip);
    }
}

/// Computes the checksum of TCP, UDP or ICMP, then that of the IP header, as if a packet began at `ip`, even if none does.
///
/// The transport checksum covers everything to the end of the frame, Ethernet padding included, so it is wrong for
/// short packets, as on the board.
pub(crate) fn update_checksums(frame: &mut [u8], ip: usize) {
    let Some(packet) = frame.get_mut(ip..).filter(|packet| packet.len() >= 20) else {
        return;
    };
    let header = usize::from(packet[0] & 0x0f) * 4;
    let protocol = packet[9];
    let checksum_at = match protocol {
        6 => Some(16),
        17 => Some(6),
        1 => Some(2),
        _ => None,
    };
    let length = packet.len();
    if let Some(at) = checksum_at
        .map(|at| header + at)
        .filter(|at| at + 2 <= length)
    {
        packet[at..at + 2].fill(0);
        let mut sum = sum16(&packet[header..]);
        if protocol != 1 {
            sum += sum16(&packet[12..20]) + u64::from(protocol) + (length - header) as u64;
        }
        packet[at..at + 2].copy_from_slice(&fold(sum));
    }
    packet[10..12].fill(0);
    let sum = sum16(&packet[..header.min(length)]);
    packet[10..12].copy_from_slice(&fold(sum));
}

fn sum16(bytes: &[u8]) -> u64 {
    let pairs = bytes.chunks_exact(2);
    let last = pairs
        .remainder()
        .first()
        .map_or(0, |byte| u64::from(*byte) << 8);
    pairs
        .map(|pair| u64::from(pair[0]) << 8 | u64::from(pair[1]))
        .sum::<u64>()
        + last
}

fn fold(mut sum: u64) -> [u8; 2] {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}
