//! Reports messages that were lost, changed or refused: one event each, whatever the firmware says to the controller.
//!
//! Each message is carried out, refused, or has a cause here. The cause is read off the message and the tables before the
//! message is carried out, and is reported only if the message has caused no other event. A board that lacks some of the
//! firmware's deviations has no causes that belong to them.

use super::agent::Agent;
use crate::actions::{tail_tag, Action, Actions, Destination, Rewriter};
use crate::buffers::pad;
use crate::event::{Cause, Event};
use crate::loop_iteration::LoopIteration;
use crate::port::PortMask;
use crate::quirks::Quirk;
use crate::table::{check_actions, FlowMod};
use openflow::bytes::{be16, be32};
use openflow::v1_0::flow_mod::field;
use openflow::v1_0::port;
use openflow::v1_0::wildcards;
use openflow::wire::{PACKET_OUT_13_BYTES, PACKET_OUT_BYTES, VERSION_1_0};
use openflow::{message, message13};

/// Length of a statistics request before its body, and with that of flows.
const STATISTICS_BYTES: usize = 12;
const FLOW_STATISTICS_BYTES: usize = 56;
/// Entries of a reply with flow statistics.
const FLOW_ENTRIES: usize = 20;
const SET_CONFIG_BYTES: usize = 12;

impl Agent {
    /// Reports that the message at the beginning of `bytes` is refused with an error of this type and code.
    pub(super) fn report_refusal(
        &self,
        bytes: &[u8],
        error: (u16, u16),
        iteration: &mut LoopIteration,
    ) {
        let event = Event::MessageRefused {
            version: self.version.max(VERSION_1_0),
            message_type: bytes[1],
            error_type: error.0,
            error_code: error.1,
            quirks: self.config.quirks,
        };
        iteration.out.event(iteration.began, event);
    }

    /// Handles one message of `length` bytes at the beginning of `bytes`, of which `left` are in the segment, and
    /// reports why it was lost or changed.
    pub(super) fn diagnose_message(
        &mut self,
        bytes: &[u8],
        length: usize,
        left: usize,
        iteration: &mut LoopIteration,
    ) {
        let (before, version) = (iteration.out.events, self.version);
        let mut cause = self.predicted_cause(bytes, length);
        self.message(bytes, length, iteration);
        if bytes[1] == message::HELLO && version != 0 && version != self.version {
            cause = Some(Cause::VersionChanged);
        }
        self.report_misread(bytes, length, left, cause, before, iteration);
    }

    /// Handles one whole message by the specification, with `left` bytes from its beginning in the stream, and reports why
    /// it was changed: by deviations that are not of how messages are read.
    pub(super) fn diagnose_whole_message(
        &mut self,
        bytes: &[u8],
        left: usize,
        iteration: &mut LoopIteration,
    ) {
        let before = iteration.out.events;
        let cause = match bytes[1] {
            _ if self.version != VERSION_1_0 || bytes[0] != VERSION_1_0 => None,
            message::FLOW_MOD => self.flow_mod_cause(bytes, bytes.len()),
            message::PACKET_OUT => self.performed_cause(bytes),
            _ => None,
        };
        self.spec_message(bytes, iteration);
        self.report_misread(bytes, bytes.len(), left, cause, before, iteration);
    }

    /// Reports the cause, or what shows only after the message, unless it has caused events since there were `before`.
    fn report_misread(
        &mut self,
        bytes: &[u8],
        length: usize,
        left: usize,
        cause: Option<Cause>,
        before: u64,
        iteration: &mut LoopIteration,
    ) {
        let replies_overwritten = std::mem::take(&mut self.rx.replies_overwritten);
        if self.halted || iteration.out.events != before {
            return;
        }
        let cause = if replies_overwritten {
            Some(Cause::RepliesOverwritten)
        } else if !self.rx.pushed_out.is_empty() && length < left {
            Some(Cause::NextOverwritten)
        } else {
            cause.or_else(|| self.find_stale_actions(bytes, length))
        };
        if let Some(cause) = cause {
            let event = Event::MessageMisread {
                version: self.version,
                message_type: bytes[1],
                cause,
            };
            iteration.out.event(iteration.began, event);
        }
    }

    /// Returns why the board will not do what a message asks that it reads from a segment; `None` if it will.
    fn predicted_cause(&self, bytes: &[u8], length: usize) -> Option<Cause> {
        let kind = bytes[1];
        match kind {
            message::HELLO | message::ERROR | message::ECHO_REPLY => return None,
            message::ECHO_REQUEST if self.version == 0 && self.may_speak() => {
                return Some(Cause::EchoWithoutVersion)
            }
            message::ECHO_REQUEST if self.speaks_13() && self.tables.spec13.is_some() => {}
            message::ECHO_REQUEST if length > 8 => return Some(Cause::EchoPayload),
            message::ECHO_REQUEST if self.version == 0 => return None,
            message::ECHO_REQUEST => {}
            _ if self.version != VERSION_1_0 && !self.speaks_13() => return Some(Cause::NoVersion),
            _ => {}
        }
        if bytes[0] != self.version {
            return Some(Cause::OtherVersion);
        }
        if self.speaks_13() {
            return self.cause_13(bytes, length);
        }
        match kind {
            message::FLOW_MOD => self.flow_mod_cause(bytes, length),
            message::PACKET_OUT => self.packet_out_cause(bytes, length),
            message::STATS_REQUEST => self.statistics_cause(bytes, length),
            message::SET_CONFIG => config_cause(bytes, length, 0x8000),
            _ => (length < 8).then_some(Cause::Short),
        }
    }

    fn flow_mod_cause(&self, bytes: &[u8], length: usize) -> Option<Cause> {
        let message = FlowMod::new(bytes, length);
        self.tables.table.flow_mod_cause(message)
    }

    /// Returns the cause that shows only when the message has been carried out, if there is one.
    fn find_stale_actions(&self, bytes: &[u8], length: usize) -> Option<Cause> {
        let is_add = bytes[1] == message::FLOW_MOD
            && self.version == VERSION_1_0
            && be16(bytes, field::COMMAND) == 0;
        (is_add
            && self
                .tables
                .table
                .has_stale_actions(FlowMod::new(bytes, length)))
        .then_some(Cause::StaleActions)
    }

    fn packet_out_cause(&self, bytes: &[u8], length: usize) -> Option<Cause> {
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
                let native =
                    !ingress.is_empty() && (ingress.bits() & self.config.flooded.bits()) == 0;
                // The firmware leaves out the port with the low byte of the ingress port's number.
                let low = in_port.wrapping_sub(1) % 256;
                let has_number = (1..=4).contains(&in_port) || low >= 4;
                if !native && self.config.flooded != self.config.openflow_ports {
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
    fn performed_cause(&self, bytes: &[u8]) -> Option<Cause> {
        let in_port = be16(bytes, 12);
        let data_at = PACKET_OUT_BYTES + usize::from(be16(bytes, 14));
        let list = bytes.get(PACKET_OUT_BYTES..data_at)?;
        let data = bytes.get(data_at..).filter(|data| !data.is_empty())?;
        let actions = Actions::read(&check_actions(list, true).ok()?);
        let floods = |action| matches!(action, Action::Flood | Action::All);
        if self.config.quirks.has(Quirk::FloodIsAll)
            && self.config.flooded != self.config.openflow_ports
            && actions.iter().any(floods)
        {
            return Some(Cause::FloodElsewhere);
        }
        if !self.config.quirks.has(Quirk::ActionsByFirstTag) {
            return None;
        }
        let mut frame = data.to_vec();
        pad(&mut frame);
        let tagged = self.key(&frame, in_port).tagged;
        let performed = |by_spec| performed(&actions, frame.clone(), in_port, tagged, by_spec);
        let ((frames, outputs), (meant_frames, meant_outputs)) =
            (performed(false), performed(true));
        if outputs != meant_outputs {
            return Some(Cause::IngressByLowByte);
        }
        (frames != meant_frames).then_some(Cause::ActionsByFirstTag)
    }

    fn statistics_cause(&self, bytes: &[u8], length: usize) -> Option<Cause> {
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
                (self.tables.table.views().count() > FLOW_ENTRIES).then_some(Cause::StatisticsCut)
            }
            4 if length < 20 => Some(Cause::Short),
            _ => None,
        }
    }

    fn cause_13(&self, bytes: &[u8], length: usize) -> Option<Cause> {
        let switch = self.tables.switch13.as_ref()?;
        match bytes[1] {
            message::PACKET_OUT => self.packet_out_cause_13(bytes, length),
            message::SET_CONFIG => config_cause(bytes, length, 256),
            message13::ROLE_REQUEST => {
                (length != 24 || be32(bytes, 8) != 2).then_some(Cause::RoleIgnored)
            }
            _ => switch.message_cause(bytes, length, self.config.openflow_ports),
        }
    }

    fn packet_out_cause_13(&self, bytes: &[u8], length: usize) -> Option<Cause> {
        let output = match only_output(bytes, length, &PACKET_OUT_13) {
            Ok(output) => output,
            Err(cause) => return Some(cause),
        };
        let in_port = be32(bytes, 12);
        let exists = |port: u32| {
            let ports = self.config.openflow_ports.iter();
            ports
                .map(|port| u32::from(port.get()))
                .any(|its| its == port)
        };
        let sends = be32(output, 4);
        if !exists(in_port) && in_port != openflow::v1_3::port::CONTROLLER
            || (1..=4).contains(&sends) && !exists(sends)
        {
            return Some(Cause::Unchecked);
        }
        let leaves = match sends {
            openflow::v1_3::port::TABLE => true,
            openflow::v1_3::port::FLOOD => {
                let meant =
                    self.config.openflow_ports.bits() & !crate::openflow13::tail_bit(in_port);
                if super::version13::flooded_by_packet_out(in_port) != meant {
                    return Some(Cause::FloodElsewhere);
                }
                true
            }
            port if port == in_port && (1..=4).contains(&port) => return Some(Cause::ToIngress),
            port => (1..=4).contains(&port),
        };
        (!leaves).then_some(Cause::OutputNowhere)
    }
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

/// Lengths in a `PACKET_OUT` of one version.
struct PacketOutLayout {
    /// Where the actions begin.
    actions_at: usize,
    /// Where the length of the actions is.
    actions_bytes_at: usize,
    output_bytes: usize,
}

const PACKET_OUT_10: PacketOutLayout = PacketOutLayout {
    actions_at: PACKET_OUT_BYTES,
    actions_bytes_at: 14,
    output_bytes: 8,
};
const PACKET_OUT_13: PacketOutLayout = PacketOutLayout {
    actions_at: PACKET_OUT_13_BYTES,
    actions_bytes_at: 16,
    output_bytes: 16,
};

/// Returns the OUTPUT that is the only action of a `PACKET_OUT` with a frame, or why the firmware does something else.
fn only_output<'a>(
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
fn config_cause(bytes: &[u8], length: usize, miss_send_bytes: u16) -> Option<Cause> {
    if length < SET_CONFIG_BYTES {
        return Some(Cause::Short);
    }
    let same = be16(bytes, 8) == 0 && be16(bytes, 10) == miss_send_bytes;
    (!same).then_some(Cause::ConfigIgnored)
}
