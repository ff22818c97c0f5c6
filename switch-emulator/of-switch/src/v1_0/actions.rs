//! Action lists of OpenFlow 1.0 (1.0.1, sections 3.3, 5.2.4, and 5.4.4).

use openflow::bytes::be16;
use openflow::v1_0::{action, error, port};
use openflow::ErrorCode;

/// Which action lists a switch accepts.
#[derive(Clone, Copy, Debug)]
pub struct ActionLimits {
    /// The types of actions, a bit each, as in `FEATURES_REPLY`.
    pub types: u32,
    /// How many front ports there are; their numbers begin with 1.
    pub ports: u16,
    /// The number of actions in a list at most.
    pub actions: usize,
}

impl ActionLimits {
    /// Splits a list into its actions. Only a `PACKET_OUT` may send `to_table`.
    ///
    /// # Errors
    ///
    /// An action is of a type or length, or sends to a port, that there is not, or there are too many.
    pub fn split(self, mut list: &[u8], to_table: bool) -> Result<Vec<&[u8]>, ErrorCode> {
        let mut actions = Vec::new();
        while !list.is_empty() {
            let (kind, length) = (be16(list, 0), usize::from(be16(list, 2)));
            let expected = match action::length(kind) {
                _ if kind == action::VENDOR => return Err(error::BAD_ACTION_VENDOR),
                Some(expected) if self.types >> kind & 1 != 0 => expected,
                Some(_) if kind == action::ENQUEUE => return Err(error::BAD_ACTION_QUEUE),
                _ => return Err(error::BAD_ACTION_TYPE),
            };
            if length != expected || list.len() < length {
                return Err(error::BAD_ACTION_LENGTH);
            }
            let is_enqueue = kind == action::ENQUEUE;
            if is_enqueue || kind == action::OUTPUT {
                let is_known = match be16(list, 4) {
                    port::IN_PORT => true,
                    port::TABLE => to_table && !is_enqueue,
                    port::FLOOD | port::ALL | port::CONTROLLER => !is_enqueue,
                    port => (1..=self.ports).contains(&port),
                };
                if !is_known {
                    return Err(error::BAD_OUT_PORT);
                }
            }
            if actions.len() == self.actions {
                return Err(error::TOO_MANY_ACTIONS);
            }
            let (action, rest) = list.split_at(length);
            actions.push(action);
            list = rest;
        }
        Ok(actions)
    }
}
