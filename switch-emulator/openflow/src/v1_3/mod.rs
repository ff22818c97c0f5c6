//! OpenFlow 1.3 (1.3.4).

pub mod error;
mod fields;
pub mod flow_mod;
pub mod meter;
mod oxm;
mod packet;
pub mod port;

pub use fields::{kind, known, FieldKind, KnownFields, OxmMatch, Wanted, VLAN_PRESENT, VLAN_TYPES};
pub use oxm::{field, number, split, Oxm, OXM_HEADER_BYTES};
pub use packet::ParsedPacket;
