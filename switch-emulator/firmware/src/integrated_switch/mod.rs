//! The integrated switch: the chip between the front ports and the CPU.
//!
//! Frames pass it twice, on the way in ([`Ingress`]) and on the way out ([`Egress`]); each way ends or begins with the
//! link to the CPU. Frames of ports that are not the agent's pass it once, from port to port ([`LearningSwitch`]). It
//! buffers nothing but frames that wait for a link (section 3.5 of the paper). Only when the CPU's MAC pauses it
//! ([`FlowControl`]) do frames for the CPU fill the room that frames coming back need: `docs/overload.md`.

mod bridging_delay;
mod egress;
mod flow_control;
mod ingress;
mod learning;
mod wire;

pub(crate) use bridging_delay::BridgingDelay;
pub(crate) use egress::Egress;
pub use flow_control::is_pause_frame;
pub(crate) use flow_control::{pause_request, FlowControl};
pub(crate) use ingress::Ingress;
pub(crate) use learning::LearningSwitch;
pub(crate) use wire::{InnerLink, Wire};
