//! Arena for the bytes of frames in flight, except unmodified frames of sources.
//!
//! Frames in flight move often, so they hold only an index into the arena.

/// Index of a frame until it is removed.
pub(crate) type FrameId = u32;

/// Bytes of frames in flight.
#[derive(Debug, Default)]
pub(crate) struct FrameArena {
    frames: Vec<Vec<u8>>,
    free: Vec<FrameId>,
}

impl FrameArena {
    /// Stores `data` until it is removed.
    pub(crate) fn insert(&mut self, data: Vec<u8>) -> FrameId {
        if let Some(id) = self.free.pop() {
            self.frames[id as usize] = data;
            return id;
        }
        self.frames.push(data);
        (self.frames.len() - 1) as FrameId
    }

    #[inline]
    pub(crate) fn get(&self, id: FrameId) -> &[u8] {
        &self.frames[id as usize]
    }

    /// Removes and returns a frame.
    pub(crate) fn remove(&mut self, id: FrameId) -> Vec<u8> {
        self.free.push(id);
        std::mem::take(&mut self.frames[id as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_used_again_once_its_bytes_are_taken() {
        let mut arena = FrameArena::default();
        let (first, second) = (arena.insert(vec![1]), arena.insert(vec![2]));
        assert_eq!(arena.remove(first), [1]);
        let third = arena.insert(vec![3]);
        assert_eq!(third, first);
        assert_eq!((arena.get(second), arena.get(third)), (&[2][..], &[3][..]));
    }
}
