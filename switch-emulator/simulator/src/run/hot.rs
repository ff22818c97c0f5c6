//! What each frame needs of its source and of the boards that it passes: kept together, in few bytes, since a run of a large
//! network would find little else of them in the processor's cache.

use crate::flow::Identities;
use crate::network::{BoardNode, Network};

/// Where the frames of a source begin, in eight bytes: those of large networks stay in the processor's cache.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    /// By index in the network.
    host: u32,
    /// The line of that host, a link.
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

/// What holds for all frames of a source: few bytes, for the same reason.
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceTraits {
    /// Whether they begin in the same way, whatever their number is.
    pub(super) has_constant_key: bool,
    /// Whether they are certain to be recognised as the flow's own as long as nothing changes them.
    pub(super) is_identifiable: bool,
}

/// The links by which frames leave boards: close together, where they stay in the processor's cache.
pub(super) struct EgressLinks {
    /// For so many ports of each board.
    ports: usize,
    links: Vec<u32>,
}

impl EgressLinks {
    /// So many ports of a board are its first: most frames leave by one of them.
    const FIRST: usize = 3;

    /// In place of a link, for a port without a cable.
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

    /// The links of a board's first ports.
    #[inline(always)]
    pub(super) fn first_links(&self, board: usize) -> impl Iterator<Item = usize> + '_ {
        let first = board * self.ports;
        let links = self.links[first..first + self.ports.min(Self::FIRST)].iter();
        links
            .filter(|link| **link != Self::NONE)
            .map(|link| *link as usize)
    }

    /// The link of a board's port, which counts from 1.
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
