//! The housekeeping tick: port counters, link status and flow timeouts in turn, then the connection.

use super::agent::{Agent, VERSION_1_3};
use super::connection::CloseReason;
use super::wire::{message, Message};
use crate::event::Event;
use crate::matching::MATCH_BYTES;
use crate::native::Buffer;
use crate::outbox::Outbox;
use crate::port::{PortMask, PORTS};
use crate::quirks::Quirk;
use crate::removal::Removal;
use crate::table::{field, Expired, RemovedFlow};
use crate::time::{Duration, Instant};

impl Agent {
    /// A housekeeping tick: one of three jobs in turn, then the connection. Gives how long the CPU is busy.
    pub(crate) fn tick(&mut self, now: Instant, out: &mut Outbox) -> Duration {
        if self.halted {
            return Duration::ZERO;
        }
        self.ticks += 1;
        self.clock = now;
        self.cost_ps = 0;
        if self.ofchecks {
            match self.job {
                0 => self.count_port(out),
                1 => self.report_links(now, out),
                _ if self.quirks.has(Quirk::TimeoutsByAddress) => self.expire_flows(now, out),
                _ => {}
            }
            self.job = (self.job + 1) % 3;
            if !self.quirks.has(Quirk::TimeoutsByAddress) {
                // So that an entry goes within a tick of its timeout.
                self.expire_flows(now, out);
            }
        }
        self.tend_connection(now, out);
        Duration::from_picos_rounded(self.cost_ps)
    }

    fn tend_connection(&mut self, now: Instant, out: &mut Outbox) {
        let demands = self.connection.tick();
        if demands.echo && self.may_speak() {
            // 1234 in the byte order of the CPU.
            let request = Message::new(self.version, message::ECHO_REQUEST, [0xd2, 0x04, 0, 0]);
            self.notify_at_once(now, request, out);
        }
        if let Some(reason) = demands.close {
            self.clear_if_secure();
            let at = self.reached(now);
            self.session.close(at, out);
            out.event(
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
            self.session.connect(self.reached(now), out);
        }
    }

    /// Sends a message that answers nothing; it leaves as soon as it is written, if the window lets it.
    fn notify_at_once(&mut self, now: Instant, notice: Message, out: &mut Outbox) {
        self.cost_ps += self.costs.control().send_ps;
        let at = self.reached(now);
        self.send(at, Buffer::Exact, notice, out);
        self.session.transmit(at, out);
    }

    /// Reads the counters of one port and adds their lower 16 bits to the totals (quirk 32). The hardware's counters
    /// begin again at 0 when they are read.
    fn count_port(&mut self, out: &mut Outbox) {
        if self.version == 0 {
            return;
        }
        self.cost_ps += self.costs.housekeeping().port_counters_ps;
        let index = self.counted_port;
        self.counted_port = (index + 1) % PORTS;
        let read = std::mem::take(&mut out.hardware[index]);
        let bits = if self.quirks.has(Quirk::RareCounters) {
            0xffff
        } else {
            u64::MAX
        };
        let totals = if self.speaks_13() && self.switch13.is_some() {
            &mut self.totals13
        } else {
            &mut self.totals
        };
        totals[index].add(read, bits);
    }

    /// Sends `PORT_STATUS` for links that have changed since the last look.
    fn report_links(&mut self, now: Instant, out: &mut Outbox) {
        self.cost_ps += self.costs.housekeeping().link_status_ps;
        let changed = PortMask::from_bits(
            (self.link_up.bits() ^ self.link_seen.bits()) & self.openflow_ports.bits(),
        );
        self.link_seen = self.link_up;
        if !self.is_established() || !self.may_speak() {
            return;
        }
        for port in changed.iter() {
            if self.speaks_13() && self.standard13.is_some() {
                if let Some(status) = self.port_status_standard13(port) {
                    self.notify_at_once(now, status, out);
                }
                continue;
            }
            if self.speaks_13() {
                let status = self.port_status_13(port.get(), self.link_seen.contains(port));
                self.notify_at_once(now, status, out);
                continue;
            }
            let status = self
                .reply(message::PORT_STATUS, [0; 4])
                .u8(2)
                .uninitialised(7);
            let status = self.port_description(status, port);
            self.notify_at_once(now, status, out);
        }
    }

    /// Removes what has expired: on the board at most one entry.
    fn expire_flows(&mut self, now: Instant, out: &mut Outbox) {
        self.cost_ps += self.costs.housekeeping().flow_timeouts_ps;
        if self.uses_standard13() {
            return self.expire_standard13(now, out);
        }
        if self.speaks_13() {
            if let Some(notice) = self.expire_13().filter(|_| self.is_established()) {
                self.cost_ps += self.costs.control().send_ps;
                let at = self.reached(now);
                self.session.write(at, Buffer::Exact, notice, out);
                self.session.transmit(at, out);
            }
            return;
        }
        for expired in self.table.expire(self.time()) {
            self.report_expired(now, &expired, out);
        }
    }

    fn report_expired(&mut self, now: Instant, expired: &Expired, out: &mut Outbox) {
        let flow = &expired.flow;
        let age_s = self.age_s(flow.installed);
        let another_lost = expired.another_lost;
        if self.quirks.has(Quirk::TimeoutsByAddress) {
            out.event(
                now,
                Event::FlowExpired {
                    age_s,
                    another_lost,
                },
            );
        }
        if expired.notice && self.is_established() && self.may_speak() {
            let notice = self.flow_removed(flow, expired.reason);
            self.notify_at_once(now, notice, out);
        }
    }

    /// A notice that an entry has gone. The counters are in the byte order of the CPU.
    pub(super) fn flow_removed(&self, flow: &RemovedFlow, removal: Removal) -> Message {
        let (packets, bytes) = (flow.packets, flow.bytes);
        let counters = if self.quirks.has(Quirk::CountersOfCpu) {
            [packets.to_le_bytes(), bytes.to_le_bytes()].concat()
        } else {
            [packets.to_be_bytes(), bytes.to_be_bytes()].concat()
        };
        self.reply(message::FLOW_REMOVED, [0; 4])
            .bytes(&flow.head[field::MATCH..field::MATCH + MATCH_BYTES])
            .bytes(&flow.head[field::COOKIE..field::COOKIE + 8])
            .bytes(&flow.head[field::PRIORITY..field::PRIORITY + 2])
            .u8(removal as u8)
            .uninitialised(1)
            .u32(self.age_s(flow.installed))
            .uninitialised(4)
            .bytes(&flow.head[field::IDLE_TIMEOUT..field::IDLE_TIMEOUT + 2])
            .uninitialised(2)
            .bytes(&counters)
    }
}
