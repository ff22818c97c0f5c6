//! Frames in and out of an IP stack, in place of a device.

use std::collections::VecDeque;

use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

/// Longest IP packet.
pub(super) const MTU_BYTES: usize = 1_500;
pub(super) const ETHERNET_HEADER_BYTES: usize = 14;

/// Frame queues of a `smoltcp` interface: received and sent Ethernet frames without FCS.
#[derive(Debug, Default)]
pub struct FrameQueues {
    /// For the stack, the oldest first.
    pub received: VecDeque<Vec<u8>>,
    /// From the stack, the oldest first.
    pub sent: VecDeque<Vec<u8>>,
}

impl Device for FrameQueues {
    type RxToken<'a> = Frame;
    type TxToken<'a> = &'a mut Self;

    fn receive(&mut self, _: Instant) -> Option<(Frame, &mut Self)> {
        let frame = self.received.pop_front()?;
        Some((Frame(frame), self))
    }

    fn transmit(&mut self, _: Instant) -> Option<&mut Self> {
        Some(self)
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = ETHERNET_HEADER_BYTES + MTU_BYTES;
        capabilities
    }
}

/// A received frame.
#[derive(Debug)]
pub struct Frame(Vec<u8>);

impl RxToken for Frame {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl TxToken for &mut FrameQueues {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        let mut frame = vec![0; length];
        let result = f(&mut frame);
        self.sent.push_back(frame);
        result
    }
}
