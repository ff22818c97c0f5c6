//! The block pool that holds matches and actions of the entries.
//!
//! Blocks keep what was written into them: neither taking nor freeing one clears it. Writing past the end of a block
//! runs into the next one, as on the board.

/// Blocks: small ones first.
const SMALL_BLOCKS: usize = 256;
const SMALL_BYTES: usize = 72;
const LARGE_BLOCKS: usize = 128;
const LARGE_BYTES: usize = 96;

/// A block that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block(usize);

impl Block {
    const fn offset(self) -> usize {
        if self.0 < SMALL_BLOCKS {
            self.0 * SMALL_BYTES
        } else {
            SMALL_BLOCKS * SMALL_BYTES + (self.0 - SMALL_BLOCKS) * LARGE_BYTES
        }
    }
}

/// The pool.
#[derive(Debug)]
pub(super) struct Memory {
    /// Where the pool lies in the board's memory.
    address: u32,
    bytes: Vec<u8>,
    used: Vec<bool>,
}

impl Memory {
    pub(super) fn new(address: u32) -> Self {
        Self {
            address,
            bytes: vec![0; SMALL_BLOCKS * SMALL_BYTES + LARGE_BLOCKS * LARGE_BYTES],
            used: vec![false; SMALL_BLOCKS + LARGE_BLOCKS],
        }
    }

    /// Returns where a block lies in the board's memory.
    pub(super) const fn address(&self, block: Block) -> u32 {
        self.address + block.offset() as u32
    }

    /// Takes the first free block.
    pub(super) fn take(&mut self) -> Option<Block> {
        let index = self.used.iter().position(|used| !used)?;
        self.used[index] = true;
        Some(Block(index))
    }

    /// Frees a block.
    pub(super) fn free(&mut self, block: Block) {
        self.used[block.0] = false;
    }

    /// Frees all blocks.
    pub(super) fn free_all(&mut self) {
        self.used.fill(false);
    }

    /// Returns the bytes of the blocks in use, and the smallest and largest free block.
    pub(super) fn usage(&self) -> (usize, usize, usize) {
        let size = |index: usize| {
            if index < SMALL_BLOCKS {
                SMALL_BYTES
            } else {
                LARGE_BYTES
            }
        };
        let blocks = || self.used.iter().enumerate();
        let in_use = blocks()
            .filter(|(_, used)| **used)
            .map(|(index, _)| size(index));
        let free = || {
            blocks()
                .filter(|(_, used)| !**used)
                .map(|(index, _)| size(index))
        };
        (
            in_use.sum(),
            free().min().unwrap_or(0),
            free().max().unwrap_or(0),
        )
    }

    /// Returns the first `length` bytes of a block.
    pub(super) fn read(&self, block: Block, length: usize) -> &[u8] {
        &self.bytes[block.offset()..block.offset() + length]
    }

    /// A block and all that lies behind it in the pool.
    pub(super) fn read_on(&self, block: Block) -> &[u8] {
        &self.bytes[block.offset()..]
    }

    /// Writes at `offset` of a block. What would leave the pool is lost.
    pub(super) fn write(&mut self, block: Block, offset: usize, bytes: &[u8]) {
        let start = block.offset() + offset;
        let end = (start + bytes.len()).min(self.bytes.len());
        if let Some(target) = self.bytes.get_mut(start..end) {
            target.copy_from_slice(&bytes[..end - start]);
        }
    }
}
