//! Why the firmware does something else than a message asks: what both versions have in common.

use crate::event::Cause;
use openflow::bytes::{be16, be32};

const SET_CONFIG_BYTES: usize = 12;

/// Lengths in a `PACKET_OUT` of one version.
pub(super) struct PacketOutLayout {
    /// Where the actions begin.
    pub(super) actions_at: usize,
    /// Where the length of the actions is.
    pub(super) actions_bytes_at: usize,
    pub(super) output_bytes: usize,
}

/// Returns the OUTPUT that is the only action of a `PACKET_OUT` with a frame, or why the firmware does something else.
pub(super) fn only_output<'a>(
    bytes: &'a [u8],
    length: usize,
    layout: &PacketOutLayout,
) -> Result<&'a [u8], Cause> {
    let data_at = layout.actions_at + usize::from(be16(bytes, layout.actions_bytes_at));
    if length < layout.actions_at {
        return Err(Cause::Short);
    }
    if data_at > length {
        return Err(Cause::ActionsBeyond);
    }
    if be32(bytes, 8) != u32::MAX {
        return Err(Cause::BufferIgnored);
    }
    let list = &bytes[layout.actions_at..data_at];
    if list.is_empty() {
        return Err(Cause::NoActions);
    }
    let is_output = be16(list, 0) == 0 && usize::from(be16(list, 2)) == layout.output_bytes;
    if list.len() != layout.output_bytes || !is_output {
        return Err(Cause::OneOutput);
    }
    if data_at == length {
        return Err(Cause::NoData);
    }
    Ok(list)
}

/// `SET_CONFIG` sets nothing, so it is lost unless it says what the board does anyway.
pub(super) fn config_cause(bytes: &[u8], length: usize, miss_send_bytes: u16) -> Option<Cause> {
    if length < SET_CONFIG_BYTES {
        return Some(Cause::Short);
    }
    let same = be16(bytes, 8) == 0 && be16(bytes, 10) == miss_send_bytes;
    (!same).then_some(Cause::ConfigIgnored)
}
