//! The block pool that holds entries and meters of OpenFlow 1.3.
//!
//! Blocks keep what was written into them: neither taking nor freeing one clears it (quirks 116, 131). The blocks of all
//! classes lie behind each other in one memory.

/// Classes of blocks, by size: how many, and of how many bytes. What is longer finds none (quirk 122).
const CLASSES: [(usize, usize); 5] = [(128, 16), (256, 24), (256, 56), (256, 72), (128, 96)];

/// A block that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PoolBlock {
    index: usize,
    offset: usize,
}

/// The pool.
#[derive(Debug)]
pub(super) struct Pool {
    bytes: Vec<u8>,
    used: Vec<bool>,
}

impl Pool {
    pub(super) fn new() -> Self {
        Self {
            bytes: vec![0; CLASSES.iter().map(|(count, size)| count * size).sum()],
            used: vec![false; CLASSES.iter().map(|(count, _)| count).sum()],
        }
    }

    /// Takes the first free block of the smallest class that has one and is large enough.
    pub(super) fn take(&mut self, bytes: usize) -> Option<PoolBlock> {
        let (mut first, mut offset) = (0, 0);
        for (count, size) in CLASSES {
            if size >= bytes {
                let mut used = self.used[first..first + count].iter();
                if let Some(free) = used.position(|used| !used) {
                    self.used[first + free] = true;
                    return Some(PoolBlock {
                        index: first + free,
                        offset: offset + free * size,
                    });
                }
            }
            first += count;
            offset += count * size;
        }
        None
    }

    /// Frees a block.
    pub(super) fn free(&mut self, block: PoolBlock) {
        self.used[block.index] = false;
    }

    /// Frees all blocks.
    pub(super) fn free_all(&mut self) {
        self.used.fill(false);
    }

    /// A block and all that lies behind it.
    pub(super) fn read_on(&self, block: PoolBlock) -> &[u8] {
        &self.bytes[block.offset..]
    }

    /// Writes at `offset` of a block.
    pub(super) fn write(&mut self, block: PoolBlock, offset: usize, bytes: &[u8]) {
        let at = block.offset + offset;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }
}
