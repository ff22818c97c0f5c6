//! Memory that will be needed soon.
//!
//! What an event needs is found step by step: the entry of a frame names a port, that a link, that the next board, and that
//! its timer. In a large network most of it is in no near cache, and the processor would wait at each step. So the event
//! begins with reading what it may need, all at once.

/// From so many boards on, the near caches do not hold what all frames need. In smaller networks there is nothing to gain.
pub(crate) const PREFETCH_MIN_BOARDS: usize = 64;

/// Begins to read: nothing waits for the value.
#[inline(always)]
pub(crate) fn prefetch<T: Copy>(value: T) {
    std::hint::black_box(value);
}
