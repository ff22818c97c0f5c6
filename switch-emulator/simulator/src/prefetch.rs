//! Software prefetching for the event loop.
//!
//! An event follows pointers: a frame's entry names a port, the port a link, the link the next board, and the board its
//! timer. In a large network most of it is in no near cache, and the CPU would stall at each step. So the event loop
//! first touches all lines that it may need.

/// Number of boards from which on prefetching pays: the near caches hold the working set of smaller networks.
pub(crate) const PREFETCH_MIN_BOARDS: usize = 64;

/// Loads a value that nothing waits for.
#[inline(always)]
pub(crate) fn prefetch<T: Copy>(value: T) {
    std::hint::black_box(value);
}
