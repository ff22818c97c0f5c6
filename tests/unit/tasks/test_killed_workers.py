"""Workers that are killed, as for lack of memory, end a call in one line."""

import os
import signal

import pytest

from loko.document import InputError
from loko_testbed.tasks.executor import each_done

_LONG = 1 << 20
"""Bytes of a task that do not fit into the pipe to the workers."""


def killed(_: bytes) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("task_bytes", [1, _LONG])
def test_workers_that_are_killed_with_tasks_waiting_end_the_call(task_bytes: int) -> None:
    with pytest.raises(InputError, match="processes were killed 3 times"):
        list(each_done(killed, [bytes(task_bytes)] * 10, jobs=2))
