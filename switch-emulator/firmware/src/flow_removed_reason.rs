//! Why an entry has gone.

/// As `FLOW_REMOVED` says it, in both versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowRemovedReason {
    /// No frame has used it for too long.
    Idle = 0,
    /// It is too old.
    Hard = 1,
    Delete = 2,
    /// Of 1.3: the group that it used was deleted.
    Group = 3,
}
