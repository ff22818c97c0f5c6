"""Attack full switches: every scheme, deliberate mistakes, and violated assumptions of the guarantees."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from loko.switch_model.allocation import ALLOCATION_RULES, FIFTH_RATE, FULL_RATE, OPTIMISED, PACKET_GRANULAR
from loko.switch_model.control_traffic import AS_PRINTED, NO_MESSAGES
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import EVALUATION, loko_scenario
from loko.topology.lab import Lab, lab_of, load_lab, ring_lab
from loko.topology.lab_allocation import allocations_of
from loko.topology.ring import Ring
from loko_testbed.simulation.virtual import profile_with_capacity
from loko_testbed.simulation.worst_case.admitted_set import AdmittedSet
from loko_testbed.simulation.worst_case.attack import attack
from loko_testbed.simulation.worst_case.changes import ignore_released, succession
from loko_testbed.simulation.worst_case.delivery import (
    DeliveryResult,
    judge_delivery,
    timed_senders,
    transmit,
)
from loko_testbed.simulation.worst_case.schemes import GUARANTEED, PRINTED, admission_named, fill
from loko_testbed.simulation.worst_case.search import search_worst_case
from loko_testbed.tasks.executor import Workers

_GENERATIONS: Final = 30
_SECONDS: Final = 30.0
_SEED: Final = 1
_STAR: Final = (("H1", "H3"), ("H2", "H4"), ("H3", "H1"), ("H4", "H2"))
_TWO: Final = (*_STAR, ("H1", "H2"), ("H3", "H4"))
_ROUND: Final = tuple((f"h{number}", f"h{number % 5 + 1}") for number in range(1, 6)) + tuple(
    (f"h{number}", f"h{(number + 2) % 5 + 1}") for number in range(1, 6)
)
_RATE_BPS: Final = 200_000.0
_PAUSES_NS: Final = (100_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000)
_BRIEF: Final = {FULL_RATE.name: 4, FIFTH_RATE.name: 5, PACKET_GRANULAR: 5}
"""Number of brief flows that fit beside two flows that use nearly all of the rate."""
_CAPACITIES: Final = (0.94, 0.97, 1.0, 1.06)

AttackRow = dict[str, Any]
AttackedSet = partial[AttackRow]
"""Computes a row. It can be pickled for another process, as it wraps a function of this module."""


def every_attack(tell: Callable[[str], None], workers: Workers) -> dict[str, list[AttackRow]]:
    """Compute all tables as plain values, with each row as a task. Raises `InputError`."""
    tables: Mapping[str, Callable[[], Iterator[AttackedSet]]] = {
        "schemes": _schemes,
        "mistakes": _mistakes,
        "released": _released,
        "reserved": _reserved,
        "capacity": _capacity,
    }
    tasks = [(name, attacked) for name, rows in tables.items() for attacked in rows()]
    rows_by_seed: dict[int, AttackRow] = {}
    with closing(workers.each_done(_row, tasks)) as done:
        for place, row in done:
            rows_by_seed[place] = row
            tell(f"{tasks[place][0]}: {', '.join(f'{key} {value}' for key, value in row.items())}")
    return {
        name: [rows_by_seed[place] for place, (table, _) in enumerate(tasks) if table == name]
        for name in tables
    }


def _row(task: tuple[str, AttackedSet]) -> AttackRow:
    _, attacked = task
    return attacked()


def kept(tables: Mapping[str, list[AttackRow]]) -> bool:
    """Return whether all guarantees held that must hold: with all reservations, on boards as modelled."""
    rows = [
        *(row for row in tables["schemes"] if row["scheme"] in GUARANTEED),
        *(row for row in tables["mistakes"] if not row["too_many"]),
        *(row for row in tables["released"] if not row["forgets"]),
        *(row for row in tables["reserved"] if row["reserved"]),
        *(row for row in tables["capacity"] if row["capacity"] == 1 or row["told"]),
    ]
    return all(
        row.get("worst", row.get("worst_case", 0)) <= 1 and not row.get("lost", row.get("worst_case_lost", 0))
        for row in rows
    )


def star(profile: str = "zodiac-fx") -> Lab:
    """Return a lab of one switch with four hosts, in which only the switch's own queue matters."""
    mac = "70:b3:d5:6c:00:01"
    config = {"mac": mac, "ofchecks": False, "openflow_ports": [1, 2, 3, 4], "native_ports": []}
    return lab_of(
        {
            "name": "star",
            "title": "One switch with four hosts",
            "switches": {"s1": {"datapath_id": f"00:00:{mac}", "profile": profile, "config": config}},
            "hosts": {
                f"H{number}": {"mac": f"02:00:00:00:00:0{number}", "ip": f"10.0.0.{number}/24"}
                for number in range(1, 5)
            },
            "links": [{"a": f"H{number}", "b": f"s1:{number}"} for number in range(1, 5)],
            "control_port": 0,
        }
    )


def _schemes() -> Iterator[AttackedSet]:
    """Yield attacks on each scheme, filled with flows of 200 kbit/s and a burst of one frame."""
    labs = (
        ("one switch", star(), _STAR),
        ("two switches", load_lab("two-switch"), _TWO),
        ("ring of five", ring_lab(Ring(switches=5)), _ROUND),
    )
    for title, lab, pairs in labs:
        for scheme in (*GUARANTEED, "silo", "qjump-paper"):
            yield partial(_of_scheme, title, lab, pairs, scheme)


def _of_scheme(title: str, lab: Lab, pairs: Sequence[tuple[str, str]], scheme: str) -> AttackRow:
    case = fill(scheme, lab, pairs, rate_bps=_RATE_BPS, burst_bytes=306)
    result = attack(case, generations=_GENERATIONS, seconds=_SECONDS, seed=_SEED)
    return {
        "lab": title,
        "scheme": scheme,
        "flows": len(case.admitted),
        "guarantee_ms": result.guarantee_ms,
        "worst_case": result.worst_case.history[-1][1],
        "worst_case_lost": result.worst_case.damage.lost,
        "random": result.scattered.history[-1][1],
        "random_lost": result.scattered.damage.lost,
        "generator": max(run.worst for run in result.bursts),
        "generator_lost": max(run.lost for run in result.bursts),
    }


def _mistakes() -> Iterator[AttackedSet]:
    """Yield attacks on one switch with more flows than the scheme accepts, under the same guarantees."""
    for scheme, frame_bytes, entries, steps in (
        (FULL_RATE.name, 128, 64, (0.0, 0.15)),
        (FIFTH_RATE.name, 306, 17, (0.0, 0.15, 0.3)),
        (OPTIMISED, 128, 64, (0.0, 0.15)),
        (PACKET_GRANULAR, 128, 64, (0.0, 0.01, 0.15)),
    ):
        for too_many in steps:
            yield partial(_of_mistake, scheme, frame_bytes, entries, too_many)


def _of_mistake(scheme: str, frame_bytes: int, entries: int, too_many: float) -> AttackRow:
    case = fill(
        scheme,
        star(),
        _STAR,
        rate_bps=60_000,
        burst_bytes=frame_bytes,
        frame_bytes=frame_bytes,
        entries=entries,
        too_many=too_many,
    )
    return {
        "scheme": scheme,
        "frame_bytes": frame_bytes,
        "entries": entries,
        "too_many": too_many,
        "flows": len(case.admitted),
        **_damage(case),
    }


def _released() -> Iterator[AttackedSet]:
    """Yield attacks by flows that replace released ones, with a rule that charges for these and without."""
    for scheme in (*ALLOCATION_RULES, PACKET_GRANULAR):
        for after_ns in _PAUSES_NS:
            for forgets in (True, False):
                yield partial(_of_released, scheme, after_ns, forgets)


def _of_released(scheme: str, after_ns: int, forgets: bool) -> AttackRow:
    lives, verdict = succeeded(scheme, after_ns, forgets=forgets)
    return {
        "scheme": scheme,
        "forgets": forgets,
        "after_ms": after_ns / 1e6,
        "newcomers": lives - 2 - _BRIEF[scheme],
        "worst": verdict.worst,
        "lost": verdict.lost,
    }


def succeeded(scheme: str, after_ns: int, *, forgets: bool) -> tuple[int, DeliveryResult]:
    """Replace brief flows by others, beside two flows that share nearly all of a switch.

    Brief flows send a frame each. They are released when it has arrived or, at a fifth of the rate, where the
    switch is never busy for long, as soon as it is sent. Returns the number of all flows, and the results of
    their frames.
    """
    lab, scenario = star(), loko_scenario(entries=17, packet_sizes_bytes=(306,))
    admission = admission_named(scheme, lab, scenario, control={})
    rate_bps = 1.17e6 if scheme == FIFTH_RATE.name else 5.85e6
    history = succession(
        ignore_released(admission) if forgets else admission,
        stay=[flow._replace(rate_bps=rate_bps) for flow in _brief(0, 2)],
        first=_brief(10, _BRIEF[scheme]),
        second=_brief(20, _BRIEF[scheme]),
        after_ns=after_ns,
        duration_ns=150_000_000,
        delivered=scheme != FIFTH_RATE.name,
    )
    case = history.case(AdmittedSet(lab=lab, scheme=scheme, admitted=(), entries=17))
    records = transmit(case, timed_senders(case, history.offers()), seed=_SEED, duration_ns=400_000_000)
    return len(history.lives), judge_delivery(case, records)


def _brief(first: int, count: int) -> list[Flow]:
    """Return flows of one frame of 306 bytes each, from every host in turn."""
    pairs = (*_STAR[2:], *_TWO[4:], ("H2", "H3"))
    return [
        Flow(f"f{first + place}", *pairs[place], 5000 + first + place, 6000, 1e3, 306.0, 306)
        for place in range(count)
    ]


def _reserved() -> Iterator[AttackedSet]:
    """Yield attacks on flows that share all of the rate, with and without a reservation for interruptions."""
    for scheme in ALLOCATION_RULES:
        for name in (scheme + PRINTED, scheme):
            for flows in (2, 4):
                yield partial(_of_reserved, scheme, name, flows)


def _of_reserved(scheme: str, name: str, flows: int) -> AttackRow:
    case = _sharing(name, flows)
    return {
        "scheme": scheme,
        "reserved": name == scheme,
        "flows": len(case.admitted),
        "rate_kbps": case.flows[0].rate_bps / 1e3,
        **_damage(case),
    }


def _capacity() -> Iterator[AttackedSet]:
    """Yield attacks on boards that are faster or slower than equation 6, within the 6 % of section 3.4.2."""
    for factor in _CAPACITIES:
        for scheme in (*ALLOCATION_RULES, PACKET_GRANULAR):
            # A plan cannot assume a faster board: its passes would have to end earlier than they do.
            for told in (False, True) if scheme == PACKET_GRANULAR and factor < 1 else (False,):
                yield partial(_of_capacity, factor, scheme, told)


def _of_capacity(factor: float, scheme: str, told: bool) -> AttackRow:
    with tempfile.TemporaryDirectory(prefix="loko-profiles-") as folder:
        path = Path(folder) / f"zodiac-fx-{factor}.toml"
        path.write_text(profile_with_capacity("zodiac-fx", factor), encoding="utf-8")
        case = _sharing(scheme, 4, star(str(path) if told else "zodiac-fx"))
        return {
            "capacity": factor,
            "scheme": scheme,
            "told": told,
            "flows": len(case.admitted),
            "rate_kbps": case.flows[0].rate_bps / 1e3,
            **_damage(replace(case, profile_of={"s1": str(path)})),
        }


def _sharing(name: str, flows: int, lab: Lab | None = None) -> AdmittedSet:
    """Return flows with a burst of one frame that share all the rate that a scheme may allocate."""
    lab = lab or star()
    scheme = ALLOCATION_RULES.get(name.removesuffix(PRINTED), FULL_RATE)
    reserved = AS_PRINTED if name.endswith(PRINTED) else NO_MESSAGES
    allocation = allocations_of(lab, scheme, EVALUATION, reserved)["s1"]
    rate_bps = allocation.max_rate_bps / flows
    if name == PACKET_GRANULAR:
        rate_bps *= 0.98  # so that all four fit
    return fill(name, lab, _STAR[:flows], rate_bps=rate_bps, burst_bytes=306)


def _damage(case: AdmittedSet) -> AttackRow:
    worst = search_worst_case(case, generations=_GENERATIONS, seed=_SEED)
    return {"worst": worst.history[-1][1], "lost": worst.damage.lost}
