"""A pytest plugin: have every worker begin with tests that mostly wait.

Tests in `unit` and `property` compute; most others start programs and wait for them. In the order of their
names, one worker would wait for the last of these when the others have nothing left to compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, groupby, islice
from typing import TypeVar

import pytest

COMPUTE = frozenset(("unit", "property"))
"""The folders of tests that start no programs, but for a few."""
_Test = TypeVar("_Test")


@pytest.hookimpl(trylast=True)  # when only what runs is left
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    workers = getattr(config, "workerinput", {}).get("workercount")
    if workers is None or config.pluginmanager.hasplugin("randomly"):
        return
    waiting: list[list[pytest.Item]] = []
    computing: list[pytest.Item] = []
    for path, module in groupby(items, key=lambda item: item.path):
        if COMPUTE.isdisjoint(path.relative_to(config.rootpath).parts):
            waiting.append(list(module))
        else:
            computing.extend(module)
    items[:] = in_shares(waiting, computing, workers)


def in_shares(waiting: Sequence[Sequence[_Test]], computing: Sequence[_Test], workers: int) -> list[_Test]:
    """Return all tests in an order of which each worker gets an equal part, as pytest-xdist cuts it.

    waiting: tests by module; a module stays together, at the start of a part.
    computing: the tests that fill the parts.
    """
    rest, total = iter(computing), len(computing) + sum(map(len, waiting))
    ordered: list[_Test] = []
    for worker in range(workers):
        share = list(chain.from_iterable(waiting[worker::workers]))
        size = (total - len(ordered)) // (workers - worker)
        ordered += share + list(islice(rest, max(0, size - len(share))))
    return ordered
