//! Actions that change frames (1.0.1, sections 3.3 and 5.2.4), on the frame as it is when their turn comes. Checksums follow.

use super::action;
use crate::bytes::be16;
use crate::checksum::adjust;
use crate::ethernet::{IPV4, TCP, TYPE_AT, UDP, VLAN, VLAN_TAG_BYTES};

/// One change of a frame, with the value as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the standard's names
pub enum Rewrite {
    SetVlanVid(u16),
    SetVlanPcp(u8),
    StripVlan,
    SetDlSrc([u8; 6]),
    SetDlDst([u8; 6]),
    SetNwSrc([u8; 4]),
    SetNwDst([u8; 4]),
    SetNwTos(u8),
    SetTpSrc([u8; 2]),
    SetTpDst([u8; 2]),
}

impl Rewrite {
    /// Reads an action, whatever its length says. Returns `None` if its type is not one of those that change frames.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        let half = || core::array::from_fn(|i| byte(4 + i));
        let address = || core::array::from_fn(|i| byte(4 + i));
        let mac = || core::array::from_fn(|i| byte(4 + i));
        Some(match be16(bytes, 0) {
            action::SET_VLAN_VID => Self::SetVlanVid(be16(bytes, 4)),
            action::SET_VLAN_PCP => Self::SetVlanPcp(byte(4)),
            action::STRIP_VLAN => Self::StripVlan,
            action::SET_DL_SRC => Self::SetDlSrc(mac()),
            action::SET_DL_DST => Self::SetDlDst(mac()),
            action::SET_NW_SRC => Self::SetNwSrc(address()),
            action::SET_NW_DST => Self::SetNwDst(address()),
            action::SET_NW_TOS => Self::SetNwTos(byte(4)),
            action::SET_TP_SRC => Self::SetTpSrc(half()),
            action::SET_TP_DST => Self::SetTpDst(half()),
            _ => return None,
        })
    }

    /// Changes a frame. A field that it does not have is not added, except that setting a VLAN tag pushes one.
    pub fn apply(self, frame: &mut Vec<u8>) {
        let tagged = be16(frame, TYPE_AT) == VLAN;
        let ip = if tagged { 18 } else { 14 };
        match self {
            Self::SetVlanVid(vid) => set_tag(frame, tagged, 0xf000, vid & 0x0fff),
            Self::SetVlanPcp(pcp) => set_tag(frame, tagged, 0x1fff, u16::from(pcp & 7) << 13),
            Self::StripVlan if tagged && frame.len() >= 16 => {
                frame.drain(TYPE_AT..TYPE_AT + VLAN_TAG_BYTES);
            }
            Self::StripVlan => {}
            Self::SetDlSrc(address) => put(frame, 6, &address),
            Self::SetDlDst(address) => put(frame, 0, &address),
            _ if be16(frame, ip - 2) != IPV4 || frame.len() < ip + 20 => {}
            Self::SetNwSrc(address) => set_field(frame, ip, FieldPlace::Address(12), &address),
            Self::SetNwDst(address) => set_field(frame, ip, FieldPlace::Address(16), &address),
            Self::SetNwTos(tos) => {
                let old = [frame[ip], frame[ip + 1]];
                let new = [old[0], tos & 0xfc | old[1] & 0x03];
                adjust(frame, ip + 10, &old, &new);
                put(frame, ip, &new);
            }
            Self::SetTpSrc(port) => set_field(frame, ip, FieldPlace::Transport(0), &port),
            Self::SetTpDst(port) => set_field(frame, ip, FieldPlace::Transport(2), &port),
        }
    }
}

fn set_tag(frame: &mut Vec<u8>, tagged: bool, kept: u16, value: u16) {
    if tagged {
        let control = be16(frame, 14) & kept | value;
        put(frame, 14, &control.to_be_bytes());
    } else if frame.len() >= 12 {
        let [high, low] = value.to_be_bytes();
        frame.splice(12..12, [0x81, 0x00, high, low]);
    }
}

/// Where a field lies: at an offset of the IP header, or of the transport header.
#[derive(Clone, Copy)]
enum FieldPlace {
    Address(usize),
    Transport(usize),
}

/// Writes a field and keeps the checksums right.
fn set_field(frame: &mut [u8], ip: usize, part: FieldPlace, new: &[u8]) {
    let transport = ip + usize::from(frame[ip] & 0x0f) * 4;
    let fragment_offset = be16(frame, ip + 6) & 0x1fff;
    let first_fragment = fragment_offset == 0;
    let checksum = match frame[ip + 9] {
        TCP => Some(transport + 16),
        // 0: the sender computed none.
        UDP if be16(frame, transport + 6) != 0 => Some(transport + 6),
        _ => None,
    }
    .filter(|_| first_fragment);
    let at = match part {
        FieldPlace::Address(offset) => ip + offset,
        FieldPlace::Transport(offset) if first_fragment && matches!(frame[ip + 9], TCP | UDP) => {
            transport + offset
        }
        FieldPlace::Transport(_) => return,
    };
    let Some(old) = frame.get(at..at + new.len()).map(<[u8]>::to_vec) else {
        return;
    };
    if matches!(part, FieldPlace::Address(_)) {
        adjust(frame, ip + 10, &old, new);
    }
    if let Some(checksum) = checksum {
        adjust(frame, checksum, &old, new);
    }
    put(frame, at, new);
}

fn put(frame: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(target) = frame.get_mut(at..at + bytes.len()) {
        target.copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a UDP frame with right checksums, with or without a tag.
    fn udp(tag: Option<u16>) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        if let Some(tag) = tag {
            frame.extend(VLAN.to_be_bytes());
            frame.extend(tag.to_be_bytes());
        }
        frame.extend(IPV4.to_be_bytes());
        let mut ip = vec![
            0x45, 0, 0, 36, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        let sum = checksum(&ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        let mut datagram = vec![0x13, 0x88, 0x17, 0x70, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        let sum = checksum(&[&ip[12..20], &[0, 17, 0, 16], &datagram].concat());
        datagram[6..8].copy_from_slice(&sum.to_be_bytes());
        frame.extend(ip);
        frame.extend(datagram);
        frame
    }

    fn checksum(bytes: &[u8]) -> u16 {
        let mut sum: u32 = bytes.chunks(2).map(|pair| u32::from(be16(pair, 0))).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    fn is_right(frame: &[u8]) -> bool {
        let ip = if be16(frame, TYPE_AT) == VLAN { 18 } else { 14 };
        let datagram = &frame[ip + 20..];
        checksum(&frame[ip..ip + 20]) == 0
            && checksum(&[&frame[ip + 12..ip + 20], &[0, 17, 0, 16], datagram].concat()) == 0
    }

    #[test]
    fn checksums_are_right_after_every_change() {
        for tag in [None, Some(0x2005)] {
            for change in [
                Rewrite::SetVlanVid(9),
                Rewrite::SetVlanPcp(3),
                Rewrite::StripVlan,
                Rewrite::SetDlSrc([9; 6]),
                Rewrite::SetNwSrc([10, 9, 255, 254]),
                Rewrite::SetNwDst([192, 0, 2, 1]),
                Rewrite::SetNwTos(0xfc),
                Rewrite::SetTpSrc([0xff; 2]),
                Rewrite::SetTpDst([0, 1]),
            ] {
                let mut frame = udp(tag);
                assert!(is_right(&frame));
                change.apply(&mut frame);
                assert!(is_right(&frame), "{change:?} {tag:?}");
                let changes = change != Rewrite::StripVlan || tag.is_some();
                assert_eq!(frame != udp(tag), changes, "{change:?} {tag:?}");
            }
        }
    }

    #[test]
    fn a_tag_is_pushed_changed_and_stripped() {
        let mut frame = udp(None);
        Rewrite::SetVlanVid(100).apply(&mut frame);
        assert_eq!(frame[12..16], [0x81, 0, 0, 100]);
        Rewrite::SetVlanPcp(5).apply(&mut frame);
        assert_eq!(frame[12..16], [0x81, 0, 0xa0, 100]);
        Rewrite::SetVlanVid(7).apply(&mut frame);
        assert_eq!(frame[12..16], [0x81, 0, 0xa0, 7]);
        Rewrite::StripVlan.apply(&mut frame);
        assert_eq!(frame, udp(None));
        Rewrite::StripVlan.apply(&mut frame);
        assert_eq!(frame, udp(None));
    }

    #[test]
    fn short_frames_and_lists_change_nothing() {
        for length in 0..34 {
            for change in [
                Rewrite::SetNwSrc([1; 4]),
                Rewrite::SetTpDst([0, 1]),
                Rewrite::SetNwTos(4),
            ] {
                let mut frame = udp(None)[..length].to_vec();
                change.apply(&mut frame);
                assert_eq!(frame, udp(None)[..length]);
            }
        }
        assert_eq!(Rewrite::read(&[0, 11, 0, 8, 0, 0, 0, 0]), None);
    }
}
