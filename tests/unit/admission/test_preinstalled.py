"""Entries of backup paths that are installed beforehand: which fit, and which agree."""

from __future__ import annotations

import random

from loko.admission.protection.preinstalled import preinstalled_hops
from loko.admission.protection.replacement import ChosenPaths, rounds_of_move
from loko.topology.network import Hop


def path(*hops: tuple[str, int]) -> tuple[Hop, ...]:
    return tuple(Hop(switch=switch, output_port=port) for switch, port in hops)


DIRECT = path(("s1", 1), ("s2", 9))
BY_S3 = path(("s1", 2), ("s3", 1), ("s2", 9))
BY_S4_AND_S3 = path(("s1", 3), ("s4", 1), ("s3", 2), ("s5", 1), ("s2", 9))


def test_a_move_by_preinstalled_entries_changes_the_fork_alone() -> None:
    flows = {"f": ChosenPaths(DIRECT, None, {"a": BY_S3})}
    (hop,) = preinstalled_hops(flows, {"s3": 1})["f"]
    assert hop == BY_S3[1]
    assert rounds_of_move(DIRECT, BY_S3, [hop]) == (BY_S3[:1],)
    assert rounds_of_move(BY_S3, DIRECT, DIRECT) == (DIRECT[:1],)
    assert rounds_of_move(DIRECT, BY_S3, []) == ((hop,), BY_S3[:1])


def test_where_backup_paths_disagree_the_first_decides() -> None:
    flows = {"f": ChosenPaths(DIRECT, None, {"a": BY_S3, "b": BY_S4_AND_S3})}
    there = preinstalled_hops(flows, dict.fromkeys(("s3", "s4", "s5"), 1))["f"]
    assert set(there) == {BY_S3[1], BY_S4_AND_S3[1], BY_S4_AND_S3[3]}
    assert rounds_of_move(DIRECT, BY_S4_AND_S3, there) == (BY_S4_AND_S3[2:3], BY_S4_AND_S3[:1])


def test_a_table_has_room_for_what_any_failure_adds() -> None:
    def flow(failure: str) -> ChosenPaths:
        return ChosenPaths(DIRECT, None, {failure: BY_S3})

    local = ChosenPaths(path(("s3", 8)), None, {})
    flows = {"a": flow("x"), "b": flow("y"), "here": local}
    assert preinstalled_hops(flows, {"s3": 3}).keys() == {"a", "b"}
    assert preinstalled_hops(flows, {"s3": 2}) == {}, "either failure needs the only place"
    assert preinstalled_hops({"a": flow("x"), "here": local}, {"s3": 2}).keys() == {"a"}
    assert preinstalled_hops({"a": flow("x")}, {}) == {}
    twice = path(("s3", 7), ("s9", 1), ("s3", 8))
    for again in (ChosenPaths(twice, None, {}), ChosenPaths(DIRECT, twice, {})):
        assert preinstalled_hops({"a": flow("x"), "again": again}, {"s3": 2}) == {}
        assert preinstalled_hops({"a": flow("x"), "again": again}, {"s3": 3}).keys() == {"a"}


def test_no_failure_overfills_a_table() -> None:
    """Random flows, failures and tables: what is added in any one failure fits, and nothing more would."""
    choice = random.Random(1)
    partial = 0
    for _ in range(300):
        names = [f"x{number}" for number in range(choice.randint(1, 3))]
        flows = {
            f"f{number}": ChosenPaths(
                path((choice.choice(("s3", "s9")), 8)),
                None,
                {name: path(("s3", choice.randint(1, 2))) for name in names if choice.random() < 0.6},
            )
            for number in range(choice.randint(1, 6))
        }
        always = sum(flow.working[0].switch == "s3" for flow in flows.values())
        needed = [
            {
                name
                for name, flow in flows.items()
                if flow.working[0].switch != "s3" and failure in flow.backups
            }
            for failure in names
        ]
        room = always + max(map(len, needed)) + choice.randint(0, 2)
        there = set(preinstalled_hops(flows, {"s3": room}))

        def most(there: set[str], always: int = always, needed: list[set[str]] = needed) -> int:
            return always + max(len(there | added) for added in needed)

        assert most(there) <= room
        left = set().union(*needed) - there
        partial += bool(there and left)
        assert all(most({*there, name}) > room for name in left)
    assert partial
