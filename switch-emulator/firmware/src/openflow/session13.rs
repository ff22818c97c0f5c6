//! Settings of a session of OpenFlow 1.3 by its controller: its role, and the messages that it wants; by the
//! specification only.

/// Roles of a controller.
pub(super) mod role {
    pub(in super::super) const NO_CHANGE: u32 = 0;
    pub(in super::super) const EQUAL: u32 = 1;
    pub(in super::super) const MASTER: u32 = 2;
    pub(in super::super) const SLAVE: u32 = 3;
}

/// Settings of a session by its controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Session13 {
    pub(super) role: u32,
    /// Reasons for which each message is sent: of `PACKET_IN`, `PORT_STATUS` and `FLOW_REMOVED`, to a controller that may change
    /// things, and to one that may not.
    pub(super) wanted: [u32; 6],
}

/// Messages that the controller may want for some reasons only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AsyncMessage {
    PacketIn = 0,
    PortStatus = 2,
    FlowRemoved = 4,
}

impl Session13 {
    pub(super) const fn new() -> Self {
        Self {
            role: role::EQUAL,
            wanted: [0b11, 0, 0b111, 0b111, 0b1111, 0],
        }
    }

    /// Returns whether the controller wants such a message for this reason.
    pub(super) fn wants(&self, message: AsyncMessage, reason: u8) -> bool {
        let mask = self.wanted[message as usize + usize::from(self.role == role::SLAVE)];
        mask >> reason & 1 == 1
    }
}
