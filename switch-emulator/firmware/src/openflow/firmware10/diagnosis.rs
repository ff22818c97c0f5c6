//! Why a message of 1.0 is lost or changed.

use super::super::diagnosis::{only_output, PacketOutLayout};
use super::super::state::AgentState;
use super::forwarding::parse_key;
use super::Firmware10;
use crate::actions::{tail_tag, Action, Actions, Destination, Rewriter};
use crate::buffers::pad;
use crate::event::Cause;
use crate::port::PortMask;
use crate::quirks::Quirk;
use crate::table::{check_actions, FlowMod};
use openflow::bytes::{be16, be32};
use openflow::message;
use openflow::v1_0::flow_mod::field;
use openflow::v1_0::port;
use openflow::v1_0::wildcards;
use openflow::wire::{PACKET_OUT_BYTES, VERSION_1_0};

/// Length of a statistics request before its body, and with that of flows.
const STATISTICS_BYTES: usize = 12;
const FLOW_STATISTICS_BYTES: usize = 56;
/// Entries of a reply with flow statistics.
const FLOW_ENTRIES: usize = 20;

const PACKET_OUT_10: PacketOutLayout = PacketOutLayout {
    actions_at: PACKET_OUT_BYTES,
    actions_bytes_at: 14,
    output_bytes: 8,
};
impl Firmware10 {
    /// Returns why the board will not do what a whole message asks that is handled by the specification: deviations that
    /// are not of how messages are read.
    pub(in super::super) fn whole_message_cause(
        &self,
        state: &AgentState,
        bytes: &[u8],
    ) -> Option<Cause> {
        match bytes[1] {
            _ if state.version != VERSION_1_0 || bytes[0] != VERSION_1_0 => None,
            message::FLOW_MOD => self.table.flow_mod_cause(FlowMod::new(bytes, bytes.len())),
            message::PACKET_OUT => performed_cause(state, bytes),
            _ => None,
        }
    }

    /// Returns the cause that shows only when the message has been carried out, if there is one.
    pub(in super::super) fn find_stale_actions(
        &self,
        state: &AgentState,
        bytes: &[u8],
        length: usize,
    ) -> Option<Cause> {
        let is_add = bytes[1] == message::FLOW_MOD
            && state.version == VERSION_1_0
            && be16(bytes, field::COMMAND) == 0;
        (is_add && self.table.has_stale_actions(FlowMod::new(bytes, length)))
            .then_some(Cause::StaleActions)
    }

    pub(super) fn statistics_cause(&self, bytes: &[u8], length: usize) -> Option<Cause> {
        if length < STATISTICS_BYTES {
            return Some(Cause::Short);
        }
        match be16(bytes, 8) {
            1 if length < FLOW_STATISTICS_BYTES => Some(Cause::Short),
            1 => {
                let all = be32(bytes, 12) & wildcards::ALL == wildcards::ALL
                    && matches!(bytes[52], 0 | 0xff)
                    && be16(bytes, 54) == port::NONE;
                if !all {
                    return Some(Cause::FilterIgnored);
                }
                (self.table.views().count() > FLOW_ENTRIES).then_some(Cause::StatisticsCut)
            }
            4 if length < 20 => Some(Cause::Short),
            _ => None,
        }
    }
}

pub(super) fn packet_out_cause(state: &AgentState, bytes: &[u8], length: usize) -> Option<Cause> {
    let output = match only_output(bytes, length, &PACKET_OUT_10) {
        Ok(output) => output,
        Err(cause) => return Some(cause),
    };
    let in_port = be16(bytes, 12);
    let leaves = match be16(output, 4) {
        port::TABLE => true,
        port::FLOOD => {
            let ingress = PortMask::from_bits(tail_tag(in_port));
            // A native ingress port makes a tag that sends the frame nowhere.
            let native = !ingress.is_empty() && (ingress.bits() & state.config.flooded.bits()) == 0;
            // The firmware leaves out the port with the low byte of the ingress port's number.
            let low = in_port.wrapping_sub(1) % 256;
            let has_number = (1..=4).contains(&in_port) || low >= 4;
            if !native && state.config.flooded != state.config.openflow_ports {
                return Some(Cause::FloodElsewhere);
            }
            if !native && !has_number {
                return Some(Cause::IngressByLowByte);
            }
            !native
        }
        port if port == in_port && (1..=4).contains(&port) => return Some(Cause::ToIngress),
        port => (1..=4).contains(&port),
    };
    (!leaves).then_some(Cause::OutputNowhere)
}

/// Returns why a `PACKET_OUT` whose actions are performed does not do what they say.
fn performed_cause(state: &AgentState, bytes: &[u8]) -> Option<Cause> {
    let in_port = be16(bytes, 12);
    let data_at = PACKET_OUT_BYTES + usize::from(be16(bytes, 14));
    let list = bytes.get(PACKET_OUT_BYTES..data_at)?;
    let data = bytes.get(data_at..).filter(|data| !data.is_empty())?;
    let actions = Actions::read(&check_actions(list, true).ok()?);
    let floods = |action| matches!(action, Action::Flood | Action::All);
    if state.has(Quirk::FloodIsAll)
        && state.config.flooded != state.config.openflow_ports
        && actions.iter().any(floods)
    {
        return Some(Cause::FloodElsewhere);
    }
    if !state.has(Quirk::ActionsByFirstTag) {
        return None;
    }
    let mut frame = data.to_vec();
    pad(&mut frame);
    let tagged = parse_key(state, &frame, in_port).tagged;
    let performed = |by_spec| performed(&actions, frame.clone(), in_port, tagged, by_spec);
    let ((frames, outputs), (meant_frames, meant_outputs)) = (performed(false), performed(true));
    if outputs != meant_outputs {
        return Some(Cause::IngressByLowByte);
    }
    (frames != meant_frames).then_some(Cause::ActionsByFirstTag)
}

/// Performs actions on a frame, as the specification asks or not. Returns the frames that leave, and where they go.
fn performed(
    actions: &Actions,
    mut frame: Vec<u8>,
    in_port: u16,
    tagged: bool,
    by_spec: bool,
) -> (Vec<Vec<u8>>, Vec<Destination>) {
    let all = PortMask::all();
    let mut rewriter = Rewriter::new(&mut frame, in_port, tagged, all, all, by_spec);
    let outputs = actions.iter().filter_map(|action| {
        let destination = rewriter.perform(action)?;
        Some((rewriter.frame.clone(), destination))
    });
    outputs.unzip()
}
