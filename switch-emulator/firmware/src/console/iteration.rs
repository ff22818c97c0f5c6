//! The console's share of one main-loop iteration.

use crate::openflow::Agent;
use crate::outbox::{Outbox, OutputKind};
use crate::profile::ConsoleCosts;
use crate::time::{Duration, Instant};

use super::ConsoleOutcome;

/// Width of the rules in tables.
const RULE_CHARACTERS: usize = 61;

/// Output, cost and result of one console iteration.
pub(super) struct ConsoleIteration<'a> {
    begins_at: Instant,
    costs: ConsoleCosts,
    pub(super) agent: &'a mut Agent,
    pub(super) out: &'a mut Outbox,
    text: Vec<u8>,
    cost_ps: i64,
    waited: Duration,
    restart: bool,
}

impl<'a> ConsoleIteration<'a> {
    pub(super) const fn new(
        begins_at: Instant,
        costs: ConsoleCosts,
        agent: &'a mut Agent,
        out: &'a mut Outbox,
    ) -> Self {
        Self {
            begins_at,
            costs,
            agent,
            out,
            text: Vec::new(),
            cost_ps: 0,
            waited: Duration::ZERO,
            restart: false,
        }
    }

    /// The CPU is busy for so long.
    pub(super) fn spend(&mut self, cost_ps: i64) {
        self.cost_ps += cost_ps;
    }

    /// The CPU waits for so long.
    pub(super) fn wait(&mut self, span: Duration) {
        self.waited = self.waited + span;
    }

    /// Sends bytes to the terminal.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
        self.cost_ps += self.costs.output_byte_ps * bytes.len() as i64;
    }

    /// Prints a text whose lines end as Rust's do.
    pub(super) fn print(&mut self, text: &str) {
        self.send(text.replace('\n', "\r\n").as_bytes());
    }

    /// Prints a line.
    pub(super) fn line(&mut self, text: &str) {
        self.print(text);
        self.send(b"\r\n");
    }

    /// Prints a dashed rule.
    pub(super) fn rule(&mut self) {
        self.line(&"-".repeat(RULE_CHARACTERS));
    }

    /// Instant that the work has reached.
    pub(super) fn reached(&self) -> Instant {
        self.begins_at + self.waited + Duration::from_picos_rounded(self.cost_ps)
    }

    /// The board restarts after this turn.
    pub(super) fn restart(&mut self) {
        self.restart = true;
    }

    pub(super) const fn restarts(&self) -> bool {
        self.restart
    }

    /// Returns the text to the terminal.
    pub(super) fn finish(self) -> ConsoleOutcome {
        let reached = self.reached();
        if !self.text.is_empty() {
            self.out.push(reached, OutputKind::Console(self.text));
        }
        let busy = reached - self.begins_at;
        if self.restart {
            ConsoleOutcome::Restart(busy)
        } else {
            ConsoleOutcome::Done(busy)
        }
    }
}
