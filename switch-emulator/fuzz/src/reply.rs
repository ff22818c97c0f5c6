//! What the board may send to its controller: messages that parse to their last byte.

/// Reads a big-endian number at `at`.
fn be16(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]))
}

/// Checks a message of the board. `specification`: of one that follows it, whose actions parse, too.
///
/// # Panics
/// When it does not parse.
pub(crate) fn check(message: &[u8], specification: bool) {
    assert!(message.len() >= 8, "no header: {message:02x?}");
    let (version, kind) = (message[0], message[1]);
    assert_eq!(be16(message, 2), message.len(), "length: {message:02x?}");
    assert!(version <= 6, "version: {message:02x?}");
    assert!(
        !specification || matches!(version, 1 | 4),
        "version: {message:02x?}"
    );
    let body = &message[8..];
    let fits = match kind {
        // HELLO, both echoes, barrier reply. The specification's echo carries what was asked.
        0 | 2 | 19 => body.is_empty(),
        3 => specification || body.is_empty(),
        1 => body.len() >= 4,
        6 => body.len() >= 24 && (body.len() - 24) % 48 == 0,
        8 => body.len() == 4,
        10 => body.len() >= 10 && be16(body, 4) == body.len() - 10 && be16(body, 6) <= 0xffff,
        11 => body.len() == 80,
        12 => body.len() == 56,
        17 => statistics(body, specification),
        21 => specification && body.len() >= 8,
        _ => false,
    };
    assert!(fits, "type {kind}: {message:02x?}");
}

fn statistics(body: &[u8], specification: bool) -> bool {
    let (kind, flags, rest) = (be16(body, 0), be16(body, 2), &body[4..]);
    flags == 0
        && match kind {
            0 => rest.len() == 1_056,
            1 => flows(rest, specification),
            2 => specification && rest.len() == 24,
            3 => rest.len() == 64,
            4 => rest.len() % 104 == 0 && rest.len() <= 4 * 104,
            5 => specification && rest.is_empty(),
            _ => false,
        }
}

/// Entries of flow statistics: each begins where the one before ends.
fn flows(mut rest: &[u8], specification: bool) -> bool {
    while !rest.is_empty() {
        if rest.len() < 88 {
            return false;
        }
        let length = be16(rest, 0);
        if length < 88 || length > rest.len() {
            return false;
        }
        if specification && !actions(&rest[88..length]) {
            return false;
        }
        rest = &rest[length..];
    }
    true
}

fn actions(mut rest: &[u8]) -> bool {
    while !rest.is_empty() {
        if rest.len() < 8 {
            return false;
        }
        let length = be16(rest, 2);
        if length < 8 || length % 8 != 0 || length > rest.len() {
            return false;
        }
        rest = &rest[length..];
    }
    true
}
