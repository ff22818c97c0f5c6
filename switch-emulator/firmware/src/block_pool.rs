//! The block pool that holds the entries of both OpenFlow versions and the meters of OpenFlow 1.3.
//!
//! Blocks keep what was written into them: neither taking nor freeing one clears it (quirks 55, 116, 131), nor does a
//! change of the version (quirk 189). The blocks of all classes lie behind each other in one memory; writing past the
//! end of a block runs into the next one.

use std::sync::Arc;

/// Classes of blocks, by size: how many, and of how many bytes. What is longer finds none (quirk 122).
const CLASSES: [(usize, usize); 5] = [(128, 16), (256, 24), (256, 56), (256, 72), (128, 96)];
/// Index of the class that holds the entries of OpenFlow 1.0 first.
const ENTRY_CLASS: usize = 3;

/// A block that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolBlock {
    index: u16,
    offset: u16,
}

impl PoolBlock {
    /// Returns the bytes from the first block for an entry of OpenFlow 1.0 to this one, which is not in front of it.
    pub(crate) fn behind_first_entry(self) -> u32 {
        let smaller = CLASSES[..ENTRY_CLASS].iter();
        let first: usize = smaller.map(|(count, size)| count * size).sum();
        (usize::from(self.offset) - first) as u32
    }
}

/// The pool. Copies share their memory until one of them is written.
#[derive(Clone, Debug)]
pub(crate) struct BlockPool {
    bytes: Arc<Vec<u8>>,
    used: Vec<bool>,
}

impl BlockPool {
    pub(crate) fn new() -> Self {
        Self {
            bytes: Arc::new(vec![
                0;
                CLASSES.iter().map(|(count, size)| count * size).sum()
            ]),
            used: vec![false; CLASSES.iter().map(|(count, _)| count).sum()],
        }
    }

    /// Takes the first free block of the smallest class that has one and is large enough.
    pub(crate) fn take(&mut self, bytes: usize) -> Option<PoolBlock> {
        let (mut first, mut offset) = (0, 0);
        for (count, size) in CLASSES {
            if size >= bytes {
                let mut used = self.used[first..first + count].iter();
                if let Some(free) = used.position(|used| !used) {
                    self.used[first + free] = true;
                    return Some(PoolBlock {
                        index: (first + free) as u16,
                        offset: (offset + free * size) as u16,
                    });
                }
            }
            first += count;
            offset += count * size;
        }
        None
    }

    /// Frees a block.
    pub(crate) fn free(&mut self, block: PoolBlock) {
        self.used[usize::from(block.index)] = false;
    }

    /// Frees all blocks.
    pub(crate) fn free_all(&mut self) {
        self.used.fill(false);
    }

    /// Returns the bytes of the blocks in use, and the smallest and largest free block.
    pub(crate) fn usage(&self) -> (usize, usize, usize) {
        let sizes = CLASSES
            .iter()
            .flat_map(|(count, size)| std::iter::repeat_n(*size, *count));
        let (used, free): (Vec<_>, Vec<_>) =
            self.used.iter().zip(sizes).partition(|(used, _)| **used);
        let free = || free.iter().map(|(_, size)| *size);
        (
            used.iter().map(|(_, size)| size).sum(),
            free().min().unwrap_or(0),
            free().max().unwrap_or(0),
        )
    }

    /// Returns the first `length` bytes of a block.
    pub(crate) fn read(&self, block: PoolBlock, length: usize) -> &[u8] {
        &self.read_on(block)[..length]
    }

    /// Returns a block and all that lies behind it.
    pub(crate) fn read_on(&self, block: PoolBlock) -> &[u8] {
        &self.bytes[usize::from(block.offset)..]
    }

    /// Writes at `offset` of a block. What would leave the pool is lost.
    pub(crate) fn write(&mut self, block: PoolBlock, offset: usize, bytes: &[u8]) {
        let start = usize::from(block.offset) + offset;
        let end = (start + bytes.len()).min(self.bytes.len());
        if let Some(target) = Arc::make_mut(&mut self.bytes).get_mut(start..end) {
            target.copy_from_slice(&bytes[..end - start]);
        }
    }
}
