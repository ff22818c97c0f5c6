//! Hot state: the few bytes of sources and boards that each frame needs, packed so that they stay in the CPU cache in
//! large networks.

use crate::flow::Identities;
use crate::network::{BoardNode, Network};

/// Origin of a source's frames.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    /// Index of the host.
    host: u32,
    /// Index of the host's link.
    line: u32,
}

impl Origin {
    #[inline(always)]
    pub(super) const fn host(self) -> usize {
        self.host as usize
    }

    #[inline(always)]
    pub(super) const fn line(self) -> usize {
        self.line as usize
    }
}

/// Properties shared by all frames of a source.
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceTraits {
    /// Whether they all have the same flow key.
    pub(super) has_constant_key: bool,
    /// Whether unmodified frames are always recognised as the flow's own.
    pub(super) is_identifiable: bool,
}

/// Egress links of all boards.
pub(super) struct EgressLinks {
    /// Ports per board.
    ports: usize,
    links: Vec<u32>,
}

impl EgressLinks {
    /// Ports per board worth prefetching: most frames leave by one of them.
    const FIRST: usize = 3;

    /// Marks a port without a cable.
    const NONE: u32 = u32::MAX;

    pub(super) fn of(boards: &[BoardNode]) -> Self {
        let ports = boards.iter().map(|node| node.links.len()).max();
        let ports = ports.unwrap_or(0);
        let mut links = vec![Self::NONE; boards.len() * ports];
        for (board, node) in boards.iter().enumerate() {
            for (port, link) in node.links.iter().enumerate() {
                links[board * ports + port] = link.map_or(Self::NONE, |link| link as u32);
            }
        }
        Self { ports, links }
    }

    /// Returns the links of a board's first ports.
    #[inline(always)]
    pub(super) fn first_links(&self, board: usize) -> impl Iterator<Item = usize> + '_ {
        let first = board * self.ports;
        let links = self.links[first..first + self.ports.min(Self::FIRST)].iter();
        links
            .filter(|link| **link != Self::NONE)
            .map(|link| *link as usize)
    }

    /// Returns the link of a board's port, which counts from 1.
    #[inline(always)]
    pub(super) fn link(&self, board: usize, port: u8) -> Option<usize> {
        let link = self.links[board * self.ports + usize::from(port) - 1];
        (link != Self::NONE).then_some(link as usize)
    }
}

impl Network {
    pub(super) fn origin(&self, source: usize) -> Origin {
        Origin {
            host: self.flows[source].from(),
            line: self.line_of(source) as u32,
        }
    }

    pub(super) fn source_traits(&self, source: usize, identities: &Identities) -> SourceTraits {
        SourceTraits {
            has_constant_key: self.flows[source].constant_key().is_some(),
            is_identifiable: identities.are_identifiable(&self.flows, source),
        }
    }
}
