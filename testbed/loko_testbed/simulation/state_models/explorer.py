"""Explicit-state model checking: a breadth-first search visits every state that can be reached."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple, TypeVar

State = TypeVar("State", bound=Hashable)


class ExplorationResult(NamedTuple):
    """The outcome of a search."""

    states: int
    """States that were visited."""
    counterexample: tuple[str, ...] | None
    """The fewest steps to a violation, by their labels; None if none can be reached."""


def explore(
    initial: State,
    steps: Callable[[State], Iterable[tuple[str, State]]],
    is_violation: Callable[[State], bool],
) -> ExplorationResult:
    """Visit the states that can be reached, up to a violation. `steps` gives each step with its label."""
    reached: dict[State, tuple[State, str] | None] = {initial: None}
    waiting = deque([initial])
    while waiting:
        state = waiting.popleft()
        if is_violation(state):
            labels = []
            while (arrived := reached[state]) is not None:
                state, label = arrived
                labels.append(label)
            return ExplorationResult(len(reached), tuple(reversed(labels)))
        for label, following in steps(state):
            arrived = state, label
            if reached.setdefault(following, arrived) is arrived:
                waiting.append(following)
    return ExplorationResult(len(reached), None)
