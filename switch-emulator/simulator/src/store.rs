//! The bytes of frames on their way that are no longer as a source sent them, or that no source sent.
//!
//! A frame itself only says where its bytes are: frames move often, and are small that way.

/// Identifies kept bytes until they are taken.
pub(crate) type Place = u32;

/// Bytes of frames.
#[derive(Debug, Default)]
pub(crate) struct Store {
    kept: Vec<Vec<u8>>,
    free: Vec<Place>,
}

impl Store {
    /// Keeps `data` until it is taken.
    pub(crate) fn keep(&mut self, data: Vec<u8>) -> Place {
        if let Some(place) = self.free.pop() {
            self.kept[place as usize] = data;
            return place;
        }
        self.kept.push(data);
        (self.kept.len() - 1) as Place
    }

    #[inline]
    pub(crate) fn bytes(&self, place: Place) -> &[u8] {
        &self.kept[place as usize]
    }

    /// Gives back what was kept there.
    pub(crate) fn take(&mut self, place: Place) -> Vec<u8> {
        self.free.push(place);
        std::mem::take(&mut self.kept[place as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_used_again_once_its_bytes_are_taken() {
        let mut store = Store::default();
        let (first, second) = (store.keep(vec![1]), store.keep(vec![2]));
        assert_eq!(store.take(first), [1]);
        let third = store.keep(vec![3]);
        assert_eq!(third, first);
        assert_eq!(
            (store.bytes(second), store.bytes(third)),
            (&[2][..], &[3][..])
        );
    }
}
