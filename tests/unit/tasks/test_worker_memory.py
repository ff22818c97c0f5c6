"""Workers keep the memory that their tasks free."""

import resource

from loko_testbed.tasks.executor import each_done

_BYTES = 3 << 24


def pages_touched(_: int) -> int:
    """Return how many pages the kernel provided while a task filled and freed its memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    data = bytearray(b"\1") * _BYTES
    del data
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_a_task_gets_the_memory_that_earlier_ones_freed() -> None:
    touched = sorted(pages for _, pages in each_done(pages_touched, range(20), jobs=2))
    pages = _BYTES // resource.getpagesize()
    assert len(touched) == 20
    # The first task of each process may need new pages.
    assert touched[-3] < pages / 10
