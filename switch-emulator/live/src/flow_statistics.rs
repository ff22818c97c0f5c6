//! A board's entries as messages of `OpenFlow`, for reports: a reader decodes them as a controller would
//! (`ovs-ofctl ofp-parse`). They say what the board has, not what its firmware would answer.

use zodiac_firmware::{Board, Flow, Flow13};

/// Types of messages, and of the statistics in them.
const STATS_REPLY: u8 = 17;
const MULTIPART_REPLY: u8 = 19;
const FLOW_STATISTICS: u16 = 1;
/// Places in the head of a `FLOW_MOD` of `OpenFlow` 1.3.
const COOKIE: usize = 8;
const TABLE: usize = 24;
const TIMEOUTS_AND_PRIORITY: usize = 26;
const FLAGS: usize = 44;

/// Returns a reply with the statistics of one entry for each entry, in the order of the table. Durations are 0: boards do
/// not tell.
#[must_use]
pub fn replies(board: &Board) -> Vec<Vec<u8>> {
    if board.openflow_version() == 4 {
        board.flows13().iter().map(reply13).collect()
    } else {
        board.flows().iter().map(reply10).collect()
    }
}

fn reply10(flow: &Flow) -> Vec<u8> {
    let mut entry = vec![0, 0];
    entry.extend(flow.fields.to_bytes());
    entry.extend([0; 8]);
    for number in [flow.priority, flow.idle_timeout_s, flow.hard_timeout_s] {
        entry.extend(number.to_be_bytes());
    }
    entry.extend([0; 6]);
    entry.extend(flow.cookie.to_be_bytes());
    entry.extend(flow.packets.to_be_bytes());
    entry.extend(flow.bytes.to_be_bytes());
    for slot in &flow.actions {
        // A slot holds its own length in bytes 2 and 3; length 0 means that it is empty.
        let length = usize::from(u16::from_be_bytes([slot[2], slot[3]]));
        entry.extend(&slot[..length.min(slot.len())]);
    }
    message(1, STATS_REPLY, &[], &entry)
}

fn reply13(flow: &Flow13) -> Vec<u8> {
    let head = |from: usize, bytes: usize| &flow.head[from..from + bytes];
    let mut entry = head(TABLE, 1).to_vec();
    entry.extend([0; 9]);
    let [idle, hard, priority] = [0, 2, 4].map(|offset| head(TIMEOUTS_AND_PRIORITY + offset, 2));
    for part in [
        priority,
        idle,
        hard,
        head(FLAGS, 2),
        &[0; 4],
        head(COOKIE, 8),
    ] {
        entry.extend(part);
    }
    entry.extend(flow.packets.to_be_bytes());
    entry.extend(flow.bytes.to_be_bytes());
    let length = 4 + flow.oxms.len();
    entry.extend([0, 1]);
    entry.extend(short(length));
    entry.extend(&flow.oxms);
    entry.resize(entry.len() + length.next_multiple_of(8) - length, 0);
    entry.extend(&flow.instructions);
    message(4, MULTIPART_REPLY, &[0; 4], &entry)
}

/// A reply with one entry, whose own length is put before it.
fn message(version: u8, kind: u8, pad: &[u8], entry: &[u8]) -> Vec<u8> {
    let length = 8 + 4 + pad.len() + 2 + entry.len();
    let mut bytes = vec![version, kind];
    bytes.extend(short(length));
    bytes.extend([0; 4]);
    bytes.extend(FLOW_STATISTICS.to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(pad);
    bytes.extend(short(2 + entry.len()));
    bytes.extend(entry);
    bytes
}

/// A length as messages have it. Entries are far shorter than 64 KiB.
fn short(length: usize) -> [u8; 2] {
    u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use zodiac_firmware::Match;

    use super::*;

    #[test]
    fn an_entry_of_openflow_1_0() {
        let mut actions = [[0; 16]; 4];
        actions[0][..8].copy_from_slice(&[0, 0, 0, 8, 0, 2, 0, 0]);
        let flow = Flow {
            fields: Match::read(&[0xff; 40]),
            priority: 7,
            cookie: 5,
            idle_timeout_s: 3,
            hard_timeout_s: 4,
            flags: 0,
            actions,
            packets: 9,
            bytes: 900,
        };
        let bytes = reply10(&flow);
        assert_eq!(bytes.len(), 12 + 88 + 8);
        assert_eq!(
            bytes[..16],
            [1, 17, 0, 108, 0, 0, 0, 0, 0, 1, 0, 0, 0, 96, 0, 0]
        );
        assert_eq!(bytes[64..70], [0, 7, 0, 3, 0, 4]);
        assert_eq!(bytes[76..84], 5_u64.to_be_bytes());
        assert_eq!(bytes[84..92], 9_u64.to_be_bytes());
        assert_eq!(bytes[92..100], 900_u64.to_be_bytes());
        assert_eq!(bytes[100..], [0, 0, 0, 8, 0, 2, 0, 0]);
    }

    #[test]
    fn an_entry_of_openflow_1_3() {
        let mut head = vec![0; 56];
        head[COOKIE + 7] = 5;
        head[TABLE] = 1;
        head[26..32].copy_from_slice(&[0, 3, 0, 4, 0, 7]);
        let flow = Flow13 {
            head,
            oxms: vec![0x80, 0, 0, 4, 0, 0, 0, 1],
            instructions: vec![0, 4, 0, 8, 0, 0, 0, 0],
            packets: 9,
            bytes: 900,
        };
        let bytes = reply13(&flow);
        assert_eq!(bytes.len(), 16 + 48 + 16 + 8);
        assert_eq!(
            bytes[..16],
            [4, 19, 0, 88, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(bytes[16..20], [0, 72, 1, 0]);
        assert_eq!(bytes[28..34], [0, 7, 0, 3, 0, 4]);
        assert_eq!(bytes[40..48], 5_u64.to_be_bytes());
        assert_eq!(bytes[48..56], 9_u64.to_be_bytes());
        assert_eq!(bytes[64..68], [0, 1, 0, 12]);
        assert_eq!(bytes[76..], [0, 0, 0, 0, 0, 4, 0, 8, 0, 0, 0, 0]);
    }
}
