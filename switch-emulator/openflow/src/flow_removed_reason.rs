//! Reason of a removal.

/// Reason in `FLOW_REMOVED` messages, in both versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowRemovedReason {
    /// Idle timeout.
    Idle = 0,
    /// Hard timeout.
    Hard = 1,
    /// A controller's message.
    Delete = 2,
    /// Of 1.3: the group that it used was deleted.
    Group = 3,
}
