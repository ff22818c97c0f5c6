//! The housekeeping tick: port counters, link status and flow timeouts in turn, then the connection.

use super::agent::Agent;
use super::connection::CloseReason;
use super::UNINITIALISED;
use crate::event::Event;
use crate::loop_iteration::LoopIteration;
use crate::native::MemoryClass;
use crate::port::{PortMask, PORTS};
use crate::quirks::Quirk;
use crate::table::{Expired, RemovedFlow};
use crate::time::Duration;
use openflow::message;
use openflow::v1_0::flow_mod::field;
use openflow::v1_0::MATCH_BYTES;
use openflow::wire::{MessageBuilder, VERSION_1_3};
use openflow::FlowRemovedReason;

impl Agent {
    /// Returns a housekeeping tick: one of three jobs in turn, then the connection. Returns how long the CPU is busy.
    pub(crate) fn tick(&mut self, iteration: &mut LoopIteration) -> Duration {
        if self.halted {
            return Duration::ZERO;
        }
        self.time.ticks += 1;
        self.time.iteration_began = iteration.began;
        if self.config.ofchecks {
            match self.time.job {
                0 => self.count_port(iteration),
                1 => self.report_links(iteration),
                _ if !self.expires_each_tick() => self.expire_flows(iteration),
                _ => {}
            }
            self.time.job = (self.time.job + 1) % 3;
            if self.expires_each_tick() {
                self.expire_flows(iteration);
            }
        }
        self.tend_connection(iteration);
        iteration.busy()
    }

    /// Returns whether timeouts are looked for at each tick, so that an entry goes within a tick of its own.
    fn expires_each_tick(&self) -> bool {
        if self.tables.are_13() {
            self.tables.use_spec13()
        } else {
            !self.config.quirks.has(Quirk::TimeoutsByAddress)
        }
    }

    fn tend_connection(&mut self, iteration: &mut LoopIteration) {
        let demands = self.connection.tick();
        if demands.echo && self.may_speak() {
            // 1234 in the byte order of the CPU.
            let request =
                MessageBuilder::new(self.version, message::ECHO_REQUEST, [0xd2, 0x04, 0, 0]);
            self.send_at_once(request, iteration);
        }
        if let Some(reason) = demands.close {
            self.clear_if_secure();
            let at = iteration.reached();
            self.session.close(at, iteration.out);
            iteration.out.event(
                at,
                match reason {
                    CloseReason::NoFeaturesRequest
                        if self.version == VERSION_1_3 && !self.speaks_13() =>
                    {
                        Event::NewerVersionClosed
                    }
                    CloseReason::NoFeaturesRequest => Event::NoFeaturesRequest,
                    CloseReason::Silent => Event::ControllerSilent,
                },
            );
        }
        if demands.connect {
            self.clear_if_secure();
            self.session.connect(iteration.reached(), iteration.out);
        }
    }

    /// Sends a message that answers nothing; it leaves as soon as it is written, if the window lets it.
    fn send_at_once(&mut self, message: MessageBuilder, iteration: &mut LoopIteration) {
        iteration.cost_ps += self.costs.control().send_ps;
        let at = iteration.reached();
        self.session
            .write(at, MemoryClass::Exact, message.finish(), iteration.out);
        self.session.transmit(at, iteration.out);
    }

    /// Reads the counters of one port and adds their lower 16 bits to the totals (quirk 32). The hardware's counters
    /// begin again at 0 when they are read.
    fn count_port(&mut self, iteration: &mut LoopIteration) {
        if self.version == 0 {
            return;
        }
        iteration.cost_ps += self.costs.housekeeping().port_counters_ps;
        let index = self.ports.counted;
        self.ports.counted = (index + 1) % PORTS;
        let read = std::mem::take(&mut iteration.out.hardware[index]);
        let bits = if self.config.quirks.has(Quirk::CoarsePortCounters) {
            0xffff
        } else {
            u64::MAX
        };
        let totals = if self.speaks_13() && self.tables.switch13.is_some() {
            &mut self.ports.totals13
        } else {
            &mut self.ports.totals
        };
        totals[index].add(read, bits);
    }

    /// Sends `PORT_STATUS` for links that have changed since the last look.
    fn report_links(&mut self, iteration: &mut LoopIteration) {
        iteration.cost_ps += self.costs.housekeeping().link_status_ps;
        let changed = PortMask::from_bits(
            (self.ports.link_up.bits() ^ self.ports.link_seen.bits())
                & self.config.openflow_ports.bits(),
        );
        self.ports.link_seen = self.ports.link_up;
        if !self.is_established() || !self.may_speak() {
            return;
        }
        for port in changed.iter() {
            if self.speaks_13() && self.tables.spec13.is_some() {
                if let Some(status) = self.port_status_spec13(port) {
                    self.send_at_once(status, iteration);
                }
                continue;
            }
            if self.speaks_13() {
                let status = self.port_status_13(port.get(), self.ports.link_seen.contains(port));
                self.send_at_once(status, iteration);
                continue;
            }
            let status = self
                .reply(message::PORT_STATUS, [0; 4])
                .u8(2)
                .bytes(&[UNINITIALISED; 7]);
            let status = self.port_description(status, port);
            self.send_at_once(status, iteration);
        }
    }

    /// Removes what has expired: on the board at most one entry.
    fn expire_flows(&mut self, iteration: &mut LoopIteration) {
        iteration.cost_ps += self.costs.housekeeping().flow_timeouts_ps;
        if self.tables.use_spec13() {
            return self.expire_spec13(iteration);
        }
        if self.speaks_13() {
            if let Some(message) = self.expire_13().filter(|_| self.is_established()) {
                iteration.cost_ps += self.costs.control().send_ps;
                let at = iteration.reached();
                self.session
                    .write(at, MemoryClass::Exact, message, iteration.out);
                self.session.transmit(at, iteration.out);
            }
            return;
        }
        for expired in self.tables.table.expire(self.time.now()) {
            self.report_expired(&expired, iteration);
        }
    }

    fn report_expired(&mut self, expired: &Expired, iteration: &mut LoopIteration) {
        let flow = &expired.flow;
        let age_s = self.time.age_s(flow.installed);
        let another_lost = expired.another_lost;
        if self.config.quirks.has(Quirk::TimeoutsByAddress) {
            iteration.out.event(
                iteration.began,
                Event::FlowExpired {
                    age_s,
                    another_lost,
                },
            );
        }
        if expired.wants_flow_removed && self.is_established() && self.may_speak() {
            let message = self.flow_removed(flow, expired.reason);
            self.send_at_once(message, iteration);
        }
    }

    /// A notice that an entry has gone. The counters are in the byte order of the CPU.
    pub(super) fn flow_removed(
        &self,
        flow: &RemovedFlow,
        reason: FlowRemovedReason,
    ) -> MessageBuilder {
        let (packets, bytes) = (flow.packets, flow.bytes);
        let counters = if self.config.quirks.has(Quirk::FlowRemovedByteOrder) {
            [packets.to_le_bytes(), bytes.to_le_bytes()].concat()
        } else {
            [packets.to_be_bytes(), bytes.to_be_bytes()].concat()
        };
        self.reply(message::FLOW_REMOVED, [0; 4])
            .bytes(&flow.head[field::MATCH..field::MATCH + MATCH_BYTES])
            .bytes(&flow.head[field::COOKIE..field::COOKIE + 8])
            .bytes(&flow.head[field::PRIORITY..field::PRIORITY + 2])
            .u8(reason as u8)
            .bytes(&[UNINITIALISED; 1])
            .u32(self.time.age_s(flow.installed))
            .bytes(&[UNINITIALISED; 4])
            .bytes(&flow.head[field::IDLE_TIMEOUT..field::IDLE_TIMEOUT + 2])
            .bytes(&[UNINITIALISED; 2])
            .bytes(&counters)
    }
}
