//! The image of the configuration in the EEPROM.
//!
//! The real block has 197 bytes, too; its inner layout is not part of the description that this emulator follows. This
//! one is the emulator's own, numbers big-endian, and unlike the real one it can be told from a blank EEPROM:
//!
//! | bytes | content |
//! |---|---|
//! | 0..4 | `ZFXE` |
//! | 4..20 | device name, filled up with zeros |
//! | 20..26 | MAC address |
//! | 26..42 | IP address, netmask, gateway, controller's address |
//! | 42..44 | controller's TCP port |
//! | 44..48 | `OpenFlow` enabled, fail state (1 safe), forced version, `EtherType` filter |
//! | 48 | `OpenFlow` ports, bit 0 is port 1 |
//! | 49..137 | four VLAN slots of 22 bytes: in use, type (1 `OpenFlow`, 2 native), tagged, ports, ID (2), name (16) |
//! | 137..193 | zeros |
//! | 193..197 | CRC-32 (IEEE 802.3) of the bytes before |

use super::vlan::SLOTS;
use super::{Settings, Vlan, VlanKind, Vlans, NAME_BYTES};
use crate::config::{FailState, MacAddress};
use crate::port::PortMask;

/// Length of the image.
pub const EEPROM_BYTES: usize = 197;

/// Contents of the EEPROM.
pub type EepromImage = [u8; EEPROM_BYTES];

/// An image that no board has saved. Its `Display` is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EepromError {
    /// Too short or too long.
    #[error("{0} bytes are no EEPROM image, which has 197; delete it to begin with the settings of the configuration")]
    Length(usize),
    /// It does not begin as an image does.
    #[error(
        "blank, or no EEPROM image; delete it to begin with the settings of the configuration"
    )]
    Blank,
    /// Its checksum is wrong.
    #[error(
        "corrupt: the checksum is wrong; delete it to begin with the settings of the configuration"
    )]
    Checksum,
    /// The checksum is right, but a value is none that a board saves.
    #[error(
        "{0} is none that a board saves; delete it to begin with the settings of the configuration"
    )]
    Value(&'static str),
}

const MAGIC: &[u8; 4] = b"ZFXE";
const CHECKSUM_AT: usize = EEPROM_BYTES - 4;
const NAME_FIELD_BYTES: usize = NAME_BYTES + 1;

impl Settings {
    /// The image that `save` writes.
    pub(crate) fn image(&self) -> EepromImage {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(name_field(&self.name));
        bytes.extend(self.mac.0);
        for address in [
            self.ip_address,
            self.netmask,
            self.gateway,
            self.controller_address,
        ] {
            bytes.extend(address.octets());
        }
        bytes.extend(self.controller_port.to_be_bytes());
        bytes.push(u8::from(self.openflow_enabled));
        bytes.push(u8::from(self.fail_state == FailState::Safe));
        bytes.push(self.openflow_version);
        bytes.push(u8::from(self.ethertype_filter));
        bytes.push(self.openflow_ports.bits());
        for vlan in self.vlans.slots() {
            let kind = match vlan.kind {
                VlanKind::Unassigned => 0,
                VlanKind::OpenFlow => 1,
                VlanKind::Native => 2,
            };
            let flags = [
                u8::from(vlan.active),
                kind,
                u8::from(vlan.tagged),
                vlan.ports.bits(),
            ];
            bytes.extend(flags);
            bytes.extend(vlan.id.to_be_bytes());
            bytes.extend(name_field(&vlan.name));
        }
        bytes.resize(CHECKSUM_AT, 0);
        bytes.extend(crc32(&bytes).to_be_bytes());
        core::array::from_fn(|index| bytes[index])
    }

    /// Parses an image.
    pub(crate) fn read(image: &[u8]) -> Result<Self, EepromError> {
        if image.len() != EEPROM_BYTES {
            return Err(EepromError::Length(image.len()));
        }
        let (content, checksum) = image.split_at(CHECKSUM_AT);
        let mut reader = Reader(content);
        if &reader.array::<4>() != MAGIC {
            return Err(EepromError::Blank);
        }
        if crc32(content).to_be_bytes() != checksum {
            return Err(EepromError::Checksum);
        }
        Ok(Self {
            name: reader.name("the device name")?,
            mac: MacAddress(reader.array()),
            ip_address: reader.array::<4>().into(),
            netmask: reader.array::<4>().into(),
            gateway: reader.array::<4>().into(),
            controller_address: reader.array::<4>().into(),
            controller_port: u16::from_be_bytes(reader.array()),
            openflow_enabled: reader.flag("OpenFlow's state")?,
            fail_state: if reader.flag("the fail state")? {
                FailState::Safe
            } else {
                FailState::Secure
            },
            openflow_version: match reader.byte() {
                version @ (0 | 1 | 4) => version,
                _ => return Err(EepromError::Value("the forced OpenFlow version")),
            },
            ethertype_filter: reader.flag("the EtherType filter's state")?,
            openflow_ports: PortMask::from_bits(reader.byte()),
            vlans: reader.vlans()?,
        })
    }
}

/// Reads fields one after the other. Bytes beyond the end count as 0; the length was checked before.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_at(N.min(self.0.len()));
        self.0 = rest;
        core::array::from_fn(|index| field.get(index).copied().unwrap_or(0))
    }

    fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    fn flag(&mut self, what: &'static str) -> Result<bool, EepromError> {
        match self.byte() {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(EepromError::Value(what)),
        }
    }

    fn name(&mut self, what: &'static str) -> Result<String, EepromError> {
        let field: [u8; NAME_FIELD_BYTES] = self.array();
        let end = field.iter().position(|byte| *byte == 0);
        let name = &field[..end.ok_or(EepromError::Value(what))?];
        String::from_utf8(name.to_vec()).map_err(|_| EepromError::Value(what))
    }

    fn vlans(&mut self) -> Result<Vlans, EepromError> {
        let mut slots: [Vlan; SLOTS] = Default::default();
        let mut taken = 0;
        for slot in &mut slots {
            slot.active = self.flag("a VLAN's use")?;
            slot.kind = match self.byte() {
                0 => VlanKind::Unassigned,
                1 => VlanKind::OpenFlow,
                2 => VlanKind::Native,
                _ => return Err(EepromError::Value("a VLAN's type")),
            };
            slot.tagged = self.flag("a VLAN's tag state")?;
            slot.ports = PortMask::from_bits(self.byte());
            slot.id = u16::from_be_bytes(self.array());
            slot.name = self.name("a VLAN's name")?;
            if taken & slot.ports.bits() != 0 {
                return Err(EepromError::Value("a port in two VLANs"));
            }
            taken |= slot.ports.bits();
        }
        Ok(Vlans::new(slots))
    }
}

fn name_field(name: &str) -> [u8; NAME_FIELD_BYTES] {
    let bytes = name.as_bytes();
    core::array::from_fn(|index| {
        let kept = index < NAME_BYTES;
        bytes.get(index).copied().filter(|_| kept).unwrap_or(0)
    })
}

/// CRC-32 of IEEE 802.3, reflected.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 * (crc & 1));
        }
    }
    !crc
}
