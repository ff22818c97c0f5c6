//! The four VLAN slots.

use crate::port::{PortMask, PortNumber};

/// VLANs that a board holds.
pub(super) const SLOTS: usize = 4;

/// Use of a VLAN's ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum VlanKind {
    /// Not said yet.
    #[default]
    Unassigned,
    /// The agent's.
    OpenFlow,
    /// Management traffic.
    Native,
}

impl VlanKind {
    /// As the console writes it.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Unassigned => "Unassigned",
            Self::OpenFlow => "OpenFlow",
            Self::Native => "Native",
        }
    }
}

/// One slot. A VLAN that is deleted leaves its ports in the slot, where they count as members until they are taken out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Vlan {
    pub(crate) active: bool,
    pub(crate) id: u16,
    pub(crate) name: String,
    pub(crate) kind: VlanKind,
    pub(crate) tagged: bool,
    pub(crate) ports: PortMask,
}

/// Why a VLAN cannot be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VlanError {
    NoSlot,
    UnknownId,
    PortTaken,
}

/// The VLAN slots. A port is in one slot at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Vlans([Vlan; SLOTS]);

impl Vlans {
    /// Returns these slots; no port may be in two of them.
    pub(super) const fn new(slots: [Vlan; SLOTS]) -> Self {
        Self(slots)
    }

    pub(super) const fn slots(&self) -> &[Vlan; SLOTS] {
        &self.0
    }

    /// VLANs in use, in the order of their slots.
    pub(crate) fn active(&self) -> impl Iterator<Item = &Vlan> {
        self.0.iter().filter(|vlan| vlan.active)
    }

    /// Takes the first free slot, with the ports that are left in it.
    pub(crate) fn add(&mut self, id: u16, name: &str) -> Result<(), VlanError> {
        let slot = self.0.iter_mut().find(|vlan| !vlan.active);
        let slot = slot.ok_or(VlanError::NoSlot)?;
        *slot = Vlan {
            active: true,
            id,
            name: name.into(),
            kind: VlanKind::Unassigned,
            tagged: false,
            ports: slot.ports,
        };
        Ok(())
    }

    /// Returns the first VLAN with this ID.
    pub(crate) fn find(&mut self, id: u16) -> Result<&mut Vlan, VlanError> {
        let found = self.0.iter_mut().find(|vlan| vlan.active && vlan.id == id);
        found.ok_or(VlanError::UnknownId)
    }

    /// Makes a port a member.
    pub(crate) fn add_port(&mut self, id: u16, port: PortNumber) -> Result<(), VlanError> {
        if self.0.iter().any(|vlan| vlan.ports.contains(port)) {
            return Err(VlanError::PortTaken);
        }
        let vlan = self.find(id)?;
        vlan.ports = vlan.ports.with(port);
        Ok(())
    }

    /// Takes a port out of its VLAN.
    pub(crate) fn delete_port(&mut self, port: PortNumber) {
        let others = !PortMask::EMPTY.with(port).bits();
        for vlan in &mut self.0 {
            vlan.ports = PortMask::from_bits(vlan.ports.bits() & others);
        }
    }
}
