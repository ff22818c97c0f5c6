//! Actions that change a frame: OpenFlow 1.0.1, section 5.2.4. Checksums follow (RFC 1624).

use super::be16;

/// Lengths of the actions: Ethernet addresses need more than the others.
const ACTION_BYTES: usize = 8;
const ADDRESS_ACTION_BYTES: usize = 16;
const VLAN: u16 = 0x8100;
const IPV4: u16 = 0x0800;
const TYPE_AT: usize = 12;
const TAG_BYTES: usize = 4;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// One change of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rewrite {
    VlanId(u16),
    VlanPriority(u8),
    StripVlan,
    DlSrc([u8; 6]),
    DlDst([u8; 6]),
    NwSrc([u8; 4]),
    NwDst([u8; 4]),
    NwTos(u8),
    TpSrc(u16),
    TpDst(u16),
}

impl Rewrite {
    /// Parses an action. Returns `None` if it does not change frames or has a nonstandard length.
    pub(super) fn read(action: &[u8]) -> Option<Self> {
        let kind = be16(action, 0);
        let length = if matches!(kind, 4 | 5) {
            ADDRESS_ACTION_BYTES
        } else {
            ACTION_BYTES
        };
        if action.len() != length {
            return None;
        }
        let mac = || core::array::from_fn(|place| action[4 + place]);
        let address = || core::array::from_fn(|place| action[4 + place]);
        Some(match kind {
            1 => Self::VlanId(be16(action, 4) & 0x0fff),
            2 => Self::VlanPriority(action[4] & 7),
            3 => Self::StripVlan,
            4 => Self::DlSrc(mac()),
            5 => Self::DlDst(mac()),
            6 => Self::NwSrc(address()),
            7 => Self::NwDst(address()),
            8 => Self::NwTos(action[4] & 0xfc),
            9 => Self::TpSrc(be16(action, 4)),
            10 => Self::TpDst(be16(action, 4)),
            _ => return None,
        })
    }

    /// Changes a frame. A field that it does not have is not added, except that setting a VLAN tag pushes one.
    pub(crate) fn apply(self, frame: &mut Vec<u8>) {
        match self {
            Self::VlanId(id) => set_tag(frame, |tag| tag & 0xf000 | id),
            Self::VlanPriority(priority) => {
                set_tag(frame, |tag| tag & 0x1fff | u16::from(priority) << 13);
            }
            Self::StripVlan => {
                if is_tagged(frame) {
                    frame.drain(TYPE_AT..TYPE_AT + TAG_BYTES);
                }
            }
            Self::DlDst(mac) => overwrite(frame, 0, &mac),
            Self::DlSrc(mac) => overwrite(frame, 6, &mac),
            Self::NwSrc(address) => rewrite_header(frame, 12, address),
            Self::NwDst(address) => rewrite_header(frame, 16, address),
            Self::NwTos(tos) => {
                if let Some(at) = ip_header(frame) {
                    let old = [frame[at], frame[at + 1]];
                    frame[at + 1] = tos | frame[at + 1] & 3;
                    let new = [frame[at], frame[at + 1]];
                    update_checksum(frame, at + 10, &old, &new);
                }
            }
            Self::TpSrc(port) => rewrite_port(frame, 0, port),
            Self::TpDst(port) => rewrite_port(frame, 2, port),
        }
    }
}

/// Returns whether a frame has a VLAN tag.
pub(crate) fn is_tagged(frame: &[u8]) -> bool {
    frame.len() >= TYPE_AT + 2 + TAG_BYTES && be16(frame, TYPE_AT) == VLAN
}

/// Changes the tag, after pushing one if there is none.
fn set_tag(frame: &mut Vec<u8>, change: impl Fn(u16) -> u16) {
    if frame.len() < TYPE_AT + 2 {
        return;
    }
    if !is_tagged(frame) {
        let [high, low] = VLAN.to_be_bytes();
        frame.splice(TYPE_AT..TYPE_AT, [high, low, 0, 0]);
    }
    let tag = change(be16(frame, TYPE_AT + 2));
    overwrite(frame, TYPE_AT + 2, &tag.to_be_bytes());
}

fn overwrite(frame: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(there) = frame.get_mut(at..at + bytes.len()) {
        there.copy_from_slice(bytes);
    }
}

/// Returns where the IPv4 header begins, if there is a whole one.
fn ip_header(frame: &[u8]) -> Option<usize> {
    let at = TYPE_AT + 2 + if is_tagged(frame) { TAG_BYTES } else { 0 };
    let is_ip = frame.len() >= at + 20 && be16(frame, at - 2) == IPV4;
    is_ip.then_some(at)
}

/// Returns where TCP or UDP begins, and its checksum; not behind a first fragment.
fn transport(frame: &[u8]) -> Option<(usize, usize)> {
    let ip = ip_header(frame)?;
    let begin = ip + usize::from(frame[ip] & 0x0f) * 4;
    let checksum = match frame[ip + 9] {
        TCP => begin + 16,
        UDP => begin + 6,
        _ => return None,
    };
    // The fragment's offset is in the last 13 bits.
    let is_first = be16(frame, ip + 6).trailing_zeros() >= 13;
    (is_first && frame.len() >= checksum + 2).then_some((begin, checksum))
}

/// Overwrites an address of the IP header, which both checksums cover.
fn rewrite_header(frame: &mut [u8], offset: usize, address: [u8; 4]) {
    let Some(ip) = ip_header(frame) else { return };
    let at = ip + offset;
    let old: [u8; 4] = core::array::from_fn(|place| frame[at + place]);
    overwrite(frame, at, &address);
    update_checksum(frame, ip + 10, &old, &address);
    if let Some((_, checksum)) = transport(frame) {
        update_transport(frame, checksum, &old, &address);
    }
}

fn rewrite_port(frame: &mut [u8], offset: usize, port: u16) {
    let Some((begin, checksum)) = transport(frame) else {
        return;
    };
    let old = be16(frame, begin + offset).to_be_bytes();
    let new = port.to_be_bytes();
    overwrite(frame, begin + offset, &new);
    update_transport(frame, checksum, &old, &new);
}

/// UDP may go without a checksum: zero.
fn update_transport(frame: &mut [u8], at: usize, old: &[u8], new: &[u8]) {
    if be16(frame, at) != 0 {
        update_checksum(frame, at, old, new);
    }
}

/// RFC 1624, equation 3.
fn update_checksum(frame: &mut [u8], at: usize, old: &[u8], new: &[u8]) {
    let mut sum = u32::from(!be16(frame, at));
    for (old, new) in old.chunks_exact(2).zip(new.chunks_exact(2)) {
        sum += u32::from(!be16(old, 0)) + u32::from(be16(new, 0));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    overwrite(frame, at, &(!(sum as u16)).to_be_bytes());
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
        let ip = ip_header(frame).unwrap();
        let datagram = &frame[ip + 20..];
        checksum(&frame[ip..ip + 20]) == 0
            && checksum(&[&frame[ip + 12..ip + 20], &[0, 17, 0, 16], datagram].concat()) == 0
    }

    #[test]
    fn checksums_are_right_after_every_change() {
        for tag in [None, Some(0x2005)] {
            for change in [
                Rewrite::VlanId(9),
                Rewrite::VlanPriority(3),
                Rewrite::StripVlan,
                Rewrite::DlSrc([9; 6]),
                Rewrite::NwSrc([10, 9, 255, 254]),
                Rewrite::NwDst([192, 0, 2, 1]),
                Rewrite::NwTos(0xfc),
                Rewrite::TpSrc(0xffff),
                Rewrite::TpDst(1),
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
        Rewrite::VlanId(100).apply(&mut frame);
        assert_eq!(frame[12..16], [0x81, 0, 0, 100]);
        Rewrite::VlanPriority(5).apply(&mut frame);
        assert_eq!(frame[12..16], [0x81, 0, 0xa0, 100]);
        Rewrite::VlanId(7).apply(&mut frame);
        assert_eq!(frame[12..16], [0x81, 0, 0xa0, 7]);
        Rewrite::StripVlan.apply(&mut frame);
        assert_eq!(frame, udp(None));
        Rewrite::StripVlan.apply(&mut frame);
        assert_eq!(frame, udp(None));
    }

    #[test]
    fn short_frames_and_lists_change_nothing() {
        for length in 0..34 {
            for change in [Rewrite::NwSrc([1; 4]), Rewrite::TpDst(1), Rewrite::NwTos(4)] {
                let mut frame = udp(None)[..length].to_vec();
                change.apply(&mut frame);
                assert_eq!(frame, udp(None)[..length]);
            }
        }
        assert_eq!(Rewrite::read(&[0, 4, 0, 8, 0, 0, 0, 0]), None);
        assert_eq!(Rewrite::read(&[0, 11, 0, 8, 0, 0, 0, 0]), None);
    }
}
