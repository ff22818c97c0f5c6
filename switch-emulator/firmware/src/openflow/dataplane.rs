//! The interface between the agent and the OpenFlow switches that a board has.

use std::fmt::Debug;

use super::clock::Timekeeping;
use super::context::AgentContext;
use super::flow_cache::CachedAction;
use super::state::AgentState;
use crate::block_pool::BlockPool;
use crate::event::Cause;
use crate::loop_iteration::LoopIteration;
use crate::openflow13::Flow13;
use crate::port::PortNumber;
use crate::table::Flow;
use crate::time::Duration;
use of_switch::MatchedEntries;
use openflow::wire::MessageBuilder;

/// Entries as values, in the order of the table: those of the dataplane's version.
#[derive(Default)]
pub(super) struct Dump {
    pub(super) v1_0: Vec<Flow>,
    pub(super) v1_3: Vec<Flow13>,
}

/// An OpenFlow switch of the board: the tables of one version, and how it handles messages and frames. Negotiation of the
/// version, framing of messages and the session are the agent's. Each method is passed what all versions share.
pub(super) trait Dataplane: Debug + Send + Sync {
    /// Handles one message of `length` bytes at the beginning of `bytes`. What follows are the bytes behind it in memory,
    /// which the firmware reads if the message is too short.
    fn message(&mut self, cx: &mut AgentContext, bytes: &[u8], length: usize);

    /// Handles a frame from a port. Returns how long the CPU is busy, and the action to cache.
    fn frame(
        &mut self,
        cx: &mut AgentContext,
        data: Vec<u8>,
        port: PortNumber,
    ) -> (Duration, Option<CachedAction>);

    /// Counts a frame of `bytes` bytes that the flow cache forwards.
    fn record_match(&mut self, time: &Timekeeping, matched: MatchedEntries, bytes: usize);

    /// Removes what has expired and tells the controller.
    fn expire(&mut self, cx: &mut AgentContext);

    /// Returns whether timeouts are looked for at each tick, so that an entry goes within a tick of its own.
    fn expires_each_tick(&self, state: &AgentState) -> bool;

    /// Returns all entries.
    fn dump(&self) -> Dump;

    /// Returns the number of entries; -1 if it has underflowed.
    fn count(&self) -> i32;

    /// Erases all entries.
    fn clear(&mut self);

    /// Returns `PORT_STATUS` of a port whose link has changed, if the controller wants to know.
    fn port_status(&mut self, state: &mut AgentState, port: PortNumber) -> Option<MessageBuilder>;

    /// Returns why the board will not do what a message asks; `None` if it will.
    fn predicted_cause(&self, state: &AgentState, bytes: &[u8], length: usize) -> Option<Cause>;

    /// Both sides have agreed on a version, this or another one.
    fn version_agreed(&mut self) {}

    /// Returns the board's block pool, as far as this dataplane has used it; `None` if it has memory of its own.
    fn pool(&self) -> Option<&BlockPool> {
        None
    }

    /// Continues with the block pool as the other version, which has these entries, has left it.
    fn take_over(&mut self, _pool: &BlockPool, _entries: i32) {}

    /// A segment begins: replies that were collected and not sent are lost.
    fn begin_segment(&mut self) {}

    /// The segment has been handled to its last byte, with a last message of this type: collected replies leave.
    fn send_collected(&mut self, _cx: &mut AgentContext, _last_type: u8) {}

    /// Tells if collected replies of a segment were lost.
    fn report_uncollected(&self, _iteration: &mut LoopIteration) {}

    /// Continues an answer in several parts, as the controller has acknowledged something. Returns what that costs.
    fn continue_statistics(&mut self, _cx: &mut AgentContext) -> i64 {
        0
    }
}
