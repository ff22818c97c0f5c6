//! Actions as OpenFlow 1.0.1 describes them (section 3.3), on the frame as it is when their turn comes.

use super::Action;
use crate::bytes::be16;

const VLAN: u16 = 0x8100;
const IPV4: u16 = 0x0800;

/// Changes the frame; outputs are not its business.
pub(super) fn rewrite(frame: &mut Vec<u8>, action: Action) {
    let tagged = be16(frame, 12) == VLAN;
    let ip = if tagged { 18 } else { 14 };
    match action {
        Action::SetVlanVid(vid) => set_tag(frame, tagged, 0xf000, vid & 0x0fff),
        Action::SetVlanPcp(pcp) => set_tag(frame, tagged, 0x1fff, u16::from(pcp & 7) << 13),
        Action::StripVlan if tagged && frame.len() >= 16 => drop(frame.drain(12..16)),
        Action::SetDlSrc(address) => put(frame, 6, &address),
        Action::SetDlDst(address) => put(frame, 0, &address),
        _ if be16(frame, ip - 2) != IPV4 || frame.len() < ip + 20 => {}
        Action::SetNwSrc(address) => set_field(frame, ip, FieldPlace::Address(12), &address),
        Action::SetNwDst(address) => set_field(frame, ip, FieldPlace::Address(16), &address),
        Action::SetNwTos(tos) => {
            let old = [frame[ip], frame[ip + 1]];
            let new = [old[0], tos & 0xfc | old[1] & 0x03];
            adjust(frame, ip + 10, &old, &new);
            put(frame, ip, &new);
        }
        Action::SetTpSrc(port) => set_field(frame, ip, FieldPlace::Transport(0), &port),
        Action::SetTpDst(port) => set_field(frame, ip, FieldPlace::Transport(2), &port),
        _ => {}
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
        6 => Some(transport + 16),
        // 0: the sender computed none.
        17 if be16(frame, transport + 6) != 0 => Some(transport + 6),
        _ => None,
    }
    .filter(|_| first_fragment);
    let at = match part {
        FieldPlace::Address(offset) => ip + offset,
        FieldPlace::Transport(offset) if first_fragment && matches!(frame[ip + 9], 6 | 17) => {
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

/// Brings a checksum up to date for a field that changes (RFC 1624).
pub(crate) fn adjust(frame: &mut [u8], at: usize, old: &[u8], new: &[u8]) {
    let Some(bytes) = frame.get_mut(at..at + 2) else {
        return;
    };
    let mut sum = u32::from(!u16::from_be_bytes([bytes[0], bytes[1]]));
    for (old, new) in old.chunks_exact(2).zip(new.chunks_exact(2)) {
        sum += u32::from(!be16(old, 0)) + u32::from(be16(new, 0));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    bytes.copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

fn put(frame: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(target) = frame.get_mut(at..at + bytes.len()) {
        target.copy_from_slice(bytes);
    }
}
