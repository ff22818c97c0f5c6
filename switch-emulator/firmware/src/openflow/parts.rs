//! What the agent is made of, beside its session: each part has its own state.

use std::sync::Arc;

use super::agent::VERSION_1_3;
use super::flow_cache::TableKind;
use super::spec13::Session13;
use crate::config::{Config, ControlCarrier, FailState, MacAddress};
use crate::cost::Costs;
use crate::matched_entries::MatchedEntries;
use crate::openflow13::spec::SpecSwitch;
use crate::openflow13::{Clock, Switch};
use crate::port::{HardwareCounters, PortMask, PortNumber, PORTS};
use crate::profile::{CpuPortTags, OpenFlow13Costs, Profile};
use crate::quirks::{Quirk, Quirks};
use crate::random::RandomBytes;
use crate::table::FlowTable;
use crate::time::Instant;

/// Memory for the segment that is handled.
const BUFFER_BYTES: usize = 1_536;

/// The board's settings, as far as the agent knows them. The console changes some.
#[derive(Debug)]
pub(super) struct AgentConfig {
    pub(super) mac: MacAddress,
    pub(super) openflow_ports: PortMask,
    /// Ports that flooding and port statistics mean: all but the native ones.
    pub(super) flooded: PortMask,
    pub(super) fail_state: FailState,
    pub(super) forced_version: u8,
    pub(super) ethertype_filter: bool,
    pub(super) ofchecks: bool,
    pub(super) control: ControlCarrier,
    pub(super) quirks: Quirks,
    pub(super) cpu_port_tags: CpuPortTags,
}

impl AgentConfig {
    pub(super) fn new(profile: &Profile, config: &Config) -> Self {
        let native: PortMask = config.native_ports.iter().copied().collect();
        Self {
            mac: config.mac,
            openflow_ports: config.openflow_ports.iter().copied().collect(),
            flooded: PortMask::from_bits(!native.bits()),
            fail_state: config.fail_state,
            forced_version: config.openflow_version,
            ethertype_filter: config.ethertype_filter,
            ofchecks: config.ofchecks,
            control: config.control,
            quirks: config.quirks,
            cpu_port_tags: profile.integrated_switch.cpu_port_tags,
        }
    }

    /// A port's MAC address where it is not made up anew each time: the board's, with the port's number added.
    pub(super) fn port_address(&self, port: PortNumber) -> [u8; 6] {
        let mut address = self.mac.0;
        address[5] = address[5].wrapping_add(port.get());
        address
    }
}

/// The tables of both versions.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) table: FlowTable,
    /// The firmware's tables of OpenFlow 1.3, on boards that speak it.
    pub(super) switch13: Option<Box<Switch>>,
    /// The tables of the correct 1.3 switch instead, on boards that do as the specification asks.
    pub(super) spec13: Option<Box<SpecSwitch>>,
    /// Whether 1.3 is the version that was agreed on last; before that, whether it is the configured one.
    is_13: bool,
}

impl Tables {
    pub(super) fn new(profile: &Profile, config: &Config, costs: &Arc<Costs>) -> Self {
        Self {
            table: FlowTable::new(
                Arc::clone(costs),
                profile.table.entries as usize,
                config.flow_memory_address,
                config.quirks,
            ),
            switch13: costs_of_13(profile, config, Quirks::Firmware)
                .map(|costs| Box::new(Switch::new(costs))),
            spec13: costs_of_13(profile, config, Quirks::Spec)
                .map(|costs| Box::new(SpecSwitch::new(costs))),
            is_13: config.openflow_version == VERSION_1_3,
        }
    }

    /// Erases the entries of both versions: their count is one number.
    pub(super) fn clear(&mut self) {
        self.table.clear();
        if let Some(switch) = &mut self.switch13 {
            switch.clear();
        }
        if let Some(switch) = &mut self.spec13 {
            switch.clear();
        }
    }

    /// Whether there are tables of OpenFlow 1.3.
    pub(super) const fn know_13(&self) -> bool {
        self.switch13.is_some() || self.spec13.is_some()
    }

    /// Whether frames are looked up in the tables of the correct 1.3 switch, as the version that was agreed on last is 1.3.
    pub(super) const fn use_spec13(&self) -> bool {
        self.spec13.is_some() && self.is_13
    }

    /// Counts a frame of `bytes` bytes for which searches find these entries. It is kept apart because it would slow down
    /// frames that pass in one step on boards that search only the first kind of table.
    #[cold]
    #[inline(never)]
    pub(super) fn record_match(
        &mut self,
        table: TableKind,
        matched: MatchedEntries,
        bytes: usize,
        time: &Timekeeping,
    ) {
        match table {
            TableKind::Firmware10 => self.table.record_match(matched.only(), bytes, time.now()),
            TableKind::Spec10 => {
                let table = &mut self.table;
                table.record_match_by_spec(matched.only(), bytes, time.now());
            }
            TableKind::Firmware13 => {
                if let Some(switch) = &mut self.switch13 {
                    switch.record_match(matched, bytes, time.clock().now_s);
                }
            }
            TableKind::Spec13 => {
                if let Some(switch) = &mut self.spec13 {
                    switch.record_match(matched, bytes, time.iteration_began);
                }
            }
        }
    }

    /// Both sides have agreed on a version: entries of the other one go.
    pub(super) fn agree_on(&mut self, version: u8) {
        self.is_13 = version == VERSION_1_3;
        if let Some(switch) = &mut self.spec13 {
            if self.is_13 {
                self.table.clear();
            } else {
                switch.clear();
            }
        }
    }
}

/// What the agent knows of its ports.
#[derive(Debug)]
pub(super) struct Ports {
    /// What `PORT_MOD` has set; of the specification only.
    pub(super) config: [u32; PORTS],
    pub(super) link_up: PortMask,
    pub(super) link_seen: PortMask,
    addresses: RandomBytes,
    /// Frames that the CPU received by each port.
    pub(super) received: [u64; PORTS],
    /// What the firmware has read of the hardware's counters.
    pub(super) totals: [HardwareCounters; PORTS],
    /// The same while OpenFlow 1.3 is spoken.
    pub(super) totals13: [HardwareCounters; PORTS],
    /// Port whose counters are read next; from 0.
    pub(super) counted: usize,
}

impl Ports {
    pub(super) const fn new() -> Self {
        const NONE: HardwareCounters = HardwareCounters {
            received_bytes: 0,
            sent_bytes: 0,
            received_dropped: 0,
        };
        Self {
            config: [0; PORTS],
            link_up: PortMask::all(),
            link_seen: PortMask::all(),
            addresses: RandomBytes::new(),
            received: [0; PORTS],
            totals: [NONE; PORTS],
            totals13: [NONE; PORTS],
            counted: 0,
        }
    }

    pub(super) fn set_link(&mut self, port: PortNumber, up: bool) {
        let others = self.link_up.without(port);
        self.link_up = if up { others.with(port) } else { others };
    }

    /// The ports of `ports` whose configuration has none of `bits`.
    pub(super) fn without(&self, ports: PortMask, bits: u32) -> PortMask {
        if self.config == [0; PORTS] {
            return ports; // as always on the board
        }
        ports
            .iter()
            .filter(|port| self.config[port.index()] & bits == 0)
            .collect()
    }

    /// A port's configuration changes where `mask` has bits.
    pub(super) fn configure(&mut self, port: PortNumber, config: u32, mask: u32) {
        let held = &mut self.config[port.index()];
        *held = *held & !mask | config & mask;
    }

    /// An address that the board makes up anew (quirk 19).
    pub(super) fn made_up_address(&mut self) -> [u8; 6] {
        core::array::from_fn(|_| self.addresses.next_byte())
    }
}

/// How the agent tells the time.
#[derive(Debug)]
pub(super) struct Timekeeping {
    /// Seconds are two ticks.
    by_ticks: bool,
    /// When the power came on.
    pub(super) powered_up: Instant,
    /// Begin of the latest pass that found work.
    pub(super) iteration_began: Instant,
    /// Housekeeping ticks since power-up.
    pub(super) ticks: u32,
    /// Which of the three housekeeping jobs comes next.
    pub(super) job: u32,
}

impl Timekeeping {
    pub(super) fn new(quirks: Quirks) -> Self {
        Self {
            by_ticks: quirks.has(Quirk::LongSeconds),
            powered_up: Instant::ZERO,
            iteration_began: Instant::ZERO,
            ticks: 0,
            job: 0,
        }
    }

    /// Time of the agent, from which the ages of flows are computed. The firmware counts seconds of two ticks.
    #[inline]
    pub(super) const fn now(&self) -> Instant {
        if self.by_ticks {
            Instant::from_nanos((self.ticks / 2) as u64 * 1_000_000_000)
        } else {
            self.iteration_began
        }
    }

    /// The clocks of the tables of 1.3.
    pub(super) fn clock(&self) -> Clock {
        let running = self.iteration_began.saturating_since(self.powered_up);
        Clock {
            now_s: self.now().saturating_since(Instant::ZERO).whole_seconds(),
            now_ms: running.as_nanos() / 1_000_000,
        }
    }

    /// Seconds since `installed`.
    pub(super) const fn age_s(&self, installed: Instant) -> u32 {
        self.now().saturating_since(installed).whole_seconds()
    }
}

/// Memory in which messages are read.
#[derive(Debug)]
pub(super) struct Input {
    /// What has come of a message that is not complete; of the specification only.
    pub(super) stream: Vec<u8>,
    /// Where the firmware has the segment that it handles, and behind it what is left of longer ones before.
    pub(super) buffer: Vec<u8>,
    /// Bytes at the end of that buffer that the segment has not written.
    pub(super) stale_bytes: usize,
    /// What a `PACKET_OUT` has written behind its end in that buffer.
    pub(super) pushed_out: Vec<u8>,
}

impl Input {
    pub(super) fn new() -> Self {
        Self {
            stream: Vec::new(),
            buffer: vec![0; BUFFER_BYTES],
            stale_bytes: 0,
            pushed_out: Vec::new(),
        }
    }
}

/// Flags and length that hold until a session's first `SET_CONFIG`.
pub(super) const FIRST_SWITCH_CONFIG: [u8; 4] = [0, 0, 0, 128];

/// What the controller has asked of the agent; of the specification only.
#[derive(Debug)]
pub(super) struct SessionConfig {
    /// In this session of OpenFlow 1.3.
    pub(super) session13: Session13,
    /// The latest generation of roles that a controller has named.
    pub(super) role_generation: Option<u64>,
    /// Flags and length of `SET_CONFIG` in this session.
    pub(super) switch_config: [u8; 4],
}

impl SessionConfig {
    pub(super) const fn new() -> Self {
        Self {
            session13: Session13::new(),
            role_generation: None,
            switch_config: FIRST_SWITCH_CONFIG,
        }
    }
}

/// What OpenFlow 1.3 costs, if a board of this profile speaks it and behaves like `quirks`.
fn costs_of_13(profile: &Profile, config: &Config, quirks: Quirks) -> Option<OpenFlow13Costs> {
    let costs = profile.cpu.openflow13.clone()?;
    (config.quirks == quirks).then_some(costs)
}
