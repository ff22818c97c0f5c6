//! The housekeeping tick: port counters, link status and flow timeouts in turn, then the connection.

use super::agent::Agent;
use super::connection::CloseReason;
use super::context::AgentContext;
use crate::event::Event;
use crate::loop_iteration::LoopIteration;
use crate::port::{PortMask, PORTS};
use crate::quirks::Quirk;
use crate::time::Duration;
use openflow::message;
use openflow::wire::{MessageBuilder, VERSION_1_3};

impl Agent {
    /// Returns a housekeeping tick: one of three jobs in turn, then the connection. Returns how long the CPU is busy.
    pub(crate) fn tick(&mut self, iteration: &mut LoopIteration) -> Duration {
        if self.state.halted {
            return Duration::ZERO;
        }
        self.state.time.ticks += 1;
        self.state.time.iteration_began = iteration.began;
        if self.state.config.ofchecks {
            let (dataplane, state) = self.agreed();
            let expires_each_tick = dataplane.expires_each_tick(state);
            let job = state.time.job;
            state.time.job = (job + 1) % 3;
            match job {
                0 => self.count_port(iteration),
                1 => self.report_links(iteration),
                _ => {}
            }
            if expires_each_tick || job == 2 {
                self.expire_flows(iteration);
            }
        }
        self.tend_connection(iteration);
        iteration.busy()
    }

    fn tend_connection(&mut self, iteration: &mut LoopIteration) {
        let demands = self.state.connection.tick();
        if demands.echo && self.state.may_speak() {
            // 1234 in the byte order of the CPU.
            let request = MessageBuilder::new(
                self.state.version,
                message::ECHO_REQUEST,
                [0xd2, 0x04, 0, 0],
            );
            self.context(iteration).send_at_once(request);
        }
        if let Some(reason) = demands.close {
            self.clear_if_secure();
            let at = iteration.reached();
            self.state.session.close(at, iteration.out);
            iteration.out.event(
                at,
                match reason {
                    CloseReason::NoFeaturesRequest
                        if self.state.version == VERSION_1_3 && !self.state.speaks_13() =>
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
            self.state
                .session
                .connect(iteration.reached(), iteration.out);
        }
    }

    /// Reads the counters of one port and adds their lower 16 bits to the totals (quirk 32). The hardware's counters
    /// begin again at 0 when they are read.
    fn count_port(&mut self, iteration: &mut LoopIteration) {
        let state = &mut self.state;
        if state.version == 0 {
            return;
        }
        iteration.cost_ps += state.costs.housekeeping().port_counters_ps;
        let index = state.ports.counted;
        state.ports.counted = (index + 1) % PORTS;
        let read = std::mem::take(&mut iteration.out.hardware[index]);
        let bits = if state.has(Quirk::CoarsePortCounters) {
            0xffff
        } else {
            u64::MAX
        };
        let totals = if state.speaks_13() && state.has(Quirk::OpenFlow13) {
            &mut state.ports.totals13
        } else {
            &mut state.ports.totals
        };
        totals[index].add(read, bits);
    }

    /// Sends `PORT_STATUS` for links that have changed since the last look.
    fn report_links(&mut self, iteration: &mut LoopIteration) {
        let state = &mut self.state;
        iteration.cost_ps += state.costs.housekeeping().link_status_ps;
        let changed = PortMask::from_bits(
            (state.ports.link_up.bits() ^ state.ports.link_seen.bits())
                & state.config.openflow_ports.bits(),
        );
        state.ports.link_seen = state.ports.link_up;
        if !state.is_established() || !state.may_speak() {
            return;
        }
        let speaks_13 = state.speaks_13();
        for port in changed.iter() {
            let (dataplane, state) = self.choose(speaks_13);
            if let Some(status) = dataplane.port_status(state, port) {
                AgentContext { state, iteration }.send_at_once(status);
            }
        }
    }

    fn expire_flows(&mut self, iteration: &mut LoopIteration) {
        iteration.cost_ps += self.state.costs.housekeeping().flow_timeouts_ps;
        let (dataplane, state) = self.tended();
        dataplane.expire(&mut AgentContext { state, iteration });
    }
}
