//! Control traffic of the agent: segments from the driver, or frames of the native ports.

use super::agent::Agent;
use super::context::AgentContext;
use super::session::Session;
use crate::buffers::{length_with_fcs, ReceivedFrame};
use crate::loop_iteration::LoopIteration;
use crate::native::{ArrivalKind, Change};
use crate::time::{Duration, Instant};

/// The driver's session with the controller.
impl Agent {
    /// The session is established.
    pub(crate) fn connected(&mut self, iteration: &mut LoopIteration) -> Duration {
        if self.state.halted {
            return Duration::ZERO;
        }
        if !self.state.connection.is_enabled() {
            // Switched off since the attempt began.
            self.state.session.close(iteration.began, iteration.out);
            return Duration::ZERO;
        }
        self.greet(iteration)
    }

    /// The session has ended.
    pub(crate) fn disconnected(&mut self) {
        self.finished();
        self.state.session.restart();
    }

    /// The controller has ended its half of the session; to a board that has closed it already, too, that is a sign of life.
    pub(crate) fn finished(&mut self) {
        self.state.connection.heard();
        if self.state.connection.is_up() {
            self.state.session.finished();
        }
        self.give_up_session();
    }

    /// The controller has reset the session: no sign of life.
    pub(crate) fn reset(&mut self) {
        self.give_up_session();
        self.state.session.restart();
    }

    /// Handles the payload of a TCP segment that had arrived at `arrived`. Returns how long the CPU is busy.
    pub(crate) fn session_segment(
        &mut self,
        arrived: Instant,
        payload: &[u8],
        iteration: &mut LoopIteration,
    ) -> Duration {
        if self.state.halted || !self.is_established() {
            return Duration::ZERO;
        }
        if let Session::Driven(session) = &mut self.state.session {
            session.acknowledged_by_data(arrived);
        }
        self.continue_statistics(iteration);
        self.segment(payload, iteration)
    }

    /// Does what is due in the stack although nothing has come. Returns how long the CPU is busy.
    pub(crate) fn run_stack(&mut self, iteration: &mut LoopIteration) -> Duration {
        let costs = self.state.costs.control();
        match &mut self.state.session {
            Session::Driven(session) => {
                // A segment without data acknowledges what was sent; what waited for it leaves now.
                let busy =
                    Duration::from_picos_rounded(costs.interrupt_ps + costs.acknowledgement_ps);
                session.acknowledged_until(iteration.began);
                let more = Duration::from_picos_rounded(self.continue_statistics(iteration));
                let busy = busy + more;
                self.state
                    .session
                    .transmit(iteration.began + busy, iteration.out);
                busy
            }
            Session::Native(native) => {
                let busy = Duration::from_picos_rounded(costs.acknowledge_ps);
                native.run_timers(iteration.began + busy);
                self.state
                    .session
                    .transmit(iteration.began + busy, iteration.out);
                self.watch_session();
                busy
            }
        }
    }

    /// The controller may have acknowledged something: an answer in several parts goes on (quirk 102), also one that a
    /// former session asked for (quirk 92). Returns what that costs.
    fn continue_statistics(&mut self, iteration: &mut LoopIteration) -> i64 {
        let acknowledged = self.state.session.take_acknowledged();
        match self.v13.as_mut().filter(|_| acknowledged) {
            Some(v13) => {
                let state = &mut self.state;
                v13.continue_statistics(&mut AgentContext { state, iteration })
            }
            None => 0,
        }
    }

    /// Returns when [`run_stack`](Self::run_stack) has next something to do.
    pub(crate) fn stack_due_at(&self) -> Option<Instant> {
        self.state.session.due_at().filter(|_| !self.state.halted)
    }
}

/// The board's own connections.
impl Agent {
    /// Handles a frame of a native port. Returns how long the CPU is busy.
    pub(crate) fn native_frame(
        &mut self,
        frame: ReceivedFrame,
        iteration: &mut LoopIteration,
    ) -> Duration {
        let costs = self.state.costs.control().clone();
        let extra_bytes = length_with_fcs(frame.data.len()) as i64 - 64;
        let received_ps = costs.interrupt_ps + costs.native_frame_ps;
        let filtered = self.state.halted || self.is_filtered(&frame.data);
        let Session::Native(native) = &mut self.state.session else {
            return Duration::ZERO;
        };
        if filtered {
            iteration.out.counters.dropped_policy += 1;
            iteration.out.pool.recycle(frame.data);
            return Duration::from_picos_rounded(received_ps);
        }
        let arrival = native.receive(iteration.began, &frame.data);
        iteration.out.pool.recycle(frame.data);
        let mut busy = Duration::from_picos_rounded(match arrival.kind {
            ArrivalKind::Ignored => received_ps,
            ArrivalKind::Answered => {
                let answer_ps = costs.native_answer_ps;
                received_ps + answer_ps + costs.native_answer_per_byte_ps * extra_bytes
            }
            ArrivalKind::Acknowledgement | ArrivalKind::Segment => {
                costs.interrupt_ps + costs.acknowledgement_ps
            }
        });
        let more_ps = self.continue_statistics(iteration);
        busy = busy + Duration::from_picos_rounded(more_ps);
        if arrival.change == Some(Change::Established) {
            if self.state.connection.is_enabled() {
                busy = self.greet(iteration);
            } else {
                // Switched off since the attempt began.
                self.state
                    .session
                    .close(iteration.began + busy, iteration.out);
            }
        }
        if !arrival.payload.is_empty() {
            busy = self.segment(&arrival.payload, iteration);
        }
        if arrival.change == Some(Change::Finished) {
            self.state.connection.heard();
        }
        if !self.state.halted {
            self.state
                .session
                .transmit(iteration.began + busy, iteration.out);
        }
        self.watch_session();
        busy
    }

    /// The agent checks its connection in each main-loop iteration.
    fn watch_session(&mut self) {
        if !self.is_established() {
            self.give_up_session();
        }
    }

    fn give_up_session(&mut self) {
        if self.state.connection.is_up() {
            self.state.connection.lost();
            self.clear_if_secure();
        }
    }
}
