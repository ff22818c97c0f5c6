"""Attacks on full switches: every scheme, deliberate mistakes, and violated assumptions of the guarantees.

Each of the tables has guarantees that must be kept, and cases in which they must be seen to break: a test
that cannot fail would prove nothing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from loko.document import StrictModel
from loko.switch_model.allocation import ALLOCATION_RULES, FIFTH_RATE, FULL_RATE, OPTIMISED, PACKET_GRANULAR
from loko.switch_model.control_traffic import AS_PRINTED, NO_MESSAGES
from loko.switch_model.flow import Flow
from loko.switch_model.scenario import EVALUATION, loko_scenario
from loko.topology.lab import Lab, lab_of, load_lab, ring_lab
from loko.topology.lab_allocation import allocations_of
from loko.topology.ring import Ring
from loko_testbed.reproduce.outcome import Outcome
from loko_testbed.reproduce.result import AxisLabel, TableResult
from loko_testbed.reproduce.studies.study import Rows, Study
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


class AttacksSize(StrictModel):
    """Which attacks, and how long each search is."""

    table: Literal["schemes", "mistakes", "released", "reserved", "capacity"]
    generations: int
    seconds: float
    """Length of the runs beside the search, of bursts at random instants and of the paper's generator."""


class AttackTask(NamedTuple):
    """A row of a table, by its place."""

    table: str
    place: int
    generations: int
    seconds: float
    seed: int

    def __str__(self) -> str:
        return f"{self.table}, {self.place + 1}"


AttackRow = dict[str, Any]
AttackedSet = Callable[[AttackTask], AttackRow]
"""Computes a row, as long as the task says."""


def tasks(size: AttacksSize, seed: int) -> list[AttackTask]:
    """Return the rows of a table."""
    count = sum(1 for _ in _TABLES[size.table]())
    return [AttackTask(size.table, place, size.generations, size.seconds, seed) for place in range(count)]


def measure(task: AttackTask) -> Rows:
    """Carry out an attack. Raises `InputError`."""
    attacked = next(islice(_TABLES[task.table](), task.place, None))
    return [{"table": task.table, **attacked(task)}]


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


def _of_scheme(
    title: str, lab: Lab, pairs: Sequence[tuple[str, str]], scheme: str, task: AttackTask
) -> AttackRow:
    case = fill(scheme, lab, pairs, rate_bps=_RATE_BPS, burst_bytes=306)
    result = attack(case, generations=task.generations, seconds=task.seconds, seed=task.seed)
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


def _of_mistake(scheme: str, frame_bytes: int, entries: int, too_many: float, task: AttackTask) -> AttackRow:
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
        **_damage(case, task),
    }


def _released() -> Iterator[AttackedSet]:
    """Yield attacks by flows that replace released ones, with a rule that charges for these and without."""
    for scheme in (*ALLOCATION_RULES, PACKET_GRANULAR):
        for after_ns in _PAUSES_NS:
            for forgets in (True, False):
                yield partial(_of_released, scheme, after_ns, forgets)


def _of_released(scheme: str, after_ns: int, forgets: bool, task: AttackTask) -> AttackRow:
    lives, verdict = succeeded(scheme, after_ns, forgets=forgets, seed=task.seed)
    return {
        "scheme": scheme,
        "forgets": forgets,
        "after_ms": after_ns / 1e6,
        "newcomers": lives - 2 - _BRIEF[scheme],
        "worst": verdict.worst,
        "lost": verdict.lost,
    }


def succeeded(scheme: str, after_ns: int, *, forgets: bool, seed: int = 1) -> tuple[int, DeliveryResult]:
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
    records = transmit(case, timed_senders(case, history.offers()), seed=seed, duration_ns=400_000_000)
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


def _of_reserved(scheme: str, name: str, flows: int, task: AttackTask) -> AttackRow:
    case = _sharing(name, flows)
    return {
        "scheme": scheme,
        "reserved": name == scheme,
        "flows": len(case.admitted),
        "rate_kbps": case.flows[0].rate_bps / 1e3,
        **_damage(case, task),
    }


def _capacity() -> Iterator[AttackedSet]:
    """Yield attacks on boards that are faster or slower than equation 6, within the 6 % of section 3.4.2."""
    for factor in _CAPACITIES:
        for scheme in (*ALLOCATION_RULES, PACKET_GRANULAR):
            # A plan cannot assume a faster board: its passes would have to end earlier than they do.
            for told in (False, True) if scheme == PACKET_GRANULAR and factor < 1 else (False,):
                yield partial(_of_capacity, factor, scheme, told)


def _of_capacity(factor: float, scheme: str, told: bool, task: AttackTask) -> AttackRow:
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
            **_damage(replace(case, profile_of={"s1": str(path)}), task),
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


def _damage(case: AdmittedSet, task: AttackTask) -> AttackRow:
    worst = search_worst_case(case, generations=task.generations, seed=task.seed)
    return {"worst": worst.history[-1][1], "lost": worst.damage.lost}


_TABLES: Final[Mapping[str, Callable[[], Iterator[AttackedSet]]]] = {
    "schemes": _schemes,
    "mistakes": _mistakes,
    "released": _released,
    "reserved": _reserved,
    "capacity": _capacity,
}

_MUST_HOLD: Final[Mapping[str, Callable[[AttackRow], bool]]] = {
    "schemes": lambda row: row["scheme"] in GUARANTEED,
    "mistakes": lambda row: not row["too_many"],
    "released": lambda row: not row["forgets"],
    "reserved": lambda row: bool(row["reserved"]),
    "capacity": lambda row: row["capacity"] == 1 or bool(row["told"]),
}
"""Whether the guarantees of a row must be kept: with all reservations, on boards as modelled."""


def show(rows: Rows) -> Outcome:
    """Show the worst damage of every row, and whether it is where guarantees must be kept."""
    [table] = {row["table"] for row in rows}
    held = [row for row in rows if _MUST_HOLD[table](row)]
    others = [row for row in rows if not _MUST_HOLD[table](row)]
    columns, texts = _TEXTS[table](rows)
    return Outcome(
        chart=None,
        findings={
            "worst": max(map(_worst, held)),
            "lost_packets": float(sum(map(_lost, held))),
            "worst_otherwise": max(map(_worst, others)),
            "cases": float(len(held)),
        },
        x=AxisLabel(name="case", unit=""),
        table=TableResult(columns=columns, rows=texts),
    )


def _worst(row: AttackRow) -> float:
    return float(row["worst_case"] if "worst_case" in row else row["worst"])


def _lost(row: AttackRow) -> int:
    return int(row["worst_case_lost"] if "worst_case_lost" in row else row["lost"])


Texts = tuple[list[str], list[list[str | float]]]


def _scheme_texts(rows: Rows) -> Texts:
    columns = ["lab", "scheme", "flows", "guarantee", "worst-case search", "random instants"]
    return [*columns, "the paper's bursts"], [
        [
            row["lab"],
            row["scheme"],
            str(row["flows"]),
            f"{row['guarantee_ms']:.2f} ms",
            *(_damage_text(row[way], row[f"{way}_lost"]) for way in ("worst_case", "random", "generator")),
        ]
        for row in rows
    ]


def _mistake_texts(rows: Rows) -> Texts:
    right = {row["scheme"]: row["flows"] for row in rows if not row["too_many"]}
    texts: list[list[str | float]] = []
    for row in rows:
        more = row["flows"] - right[row["scheme"]]
        texts.append(
            [
                row["scheme"],
                f"{row['frame_bytes']} bytes",
                str(row["entries"]),
                f"{more} ({100 * more / right[row['scheme']]:.0f} %)" if more else "none",
                str(row["flows"]),
                _damage_text(row["worst"], row["lost"]),
            ]
        )
    return ["scheme", "frames", "entries", "flows too many", "flows", "worst-case search"], texts


def _released_texts(rows: Rows) -> Texts:
    """Return a row for each pause: new flows and damage with the rule, then without it."""
    with_rule, without = ([row for row in rows if row["forgets"] is forgets] for forgets in (False, True))
    columns = ["scheme", "pause", "newcomers", "worst-case search"]
    return [*columns, "newcomers, if forgotten", "worst-case search, if forgotten"], [
        [
            kept["scheme"],
            f"{kept['after_ms']:g} ms",
            str(kept["newcomers"]),
            _damage_text(kept["worst"], kept["lost"]),
            str(forgot["newcomers"]),
            _damage_text(forgot["worst"], forgot["lost"]),
        ]
        for kept, forgot in zip(with_rule, without, strict=True)
    ]


def _reserved_texts(rows: Rows) -> Texts:
    return ["scheme", "interruptions", "flows that share the rate", "worst-case search"], [
        [
            row["scheme"],
            "reserved" if row["reserved"] else "not reserved, as printed",
            *_shared_texts(row),
        ]
        for row in rows
    ]


def _capacity_texts(rows: Rows) -> Texts:
    columns = ["true capacity / equation 6", "scheme", "flows that share the rate", "worst-case search"]
    return columns, [
        [
            f"{row['capacity']:.2f}",
            row["scheme"] + (", planned for this" if row["told"] else ""),
            *_shared_texts(row),
        ]
        for row in rows
    ]


def _shared_texts(row: AttackRow) -> list[str]:
    return [f"{row['flows']} of {row['rate_kbps']:.1f} kbit/s", _damage_text(row["worst"], row["lost"])]


def _damage_text(worst: float, lost: int) -> str:
    text = f"{worst:.3f}" if worst < 10 else f"{worst:.1f}"
    if lost:
        return f"**{text}, {lost:,} lost**"
    return f"**{text}**" if worst > 1 else text


_TEXTS: Final[Mapping[str, Callable[[Rows], Texts]]] = {
    "schemes": _scheme_texts,
    "mistakes": _mistake_texts,
    "released": _released_texts,
    "reserved": _reserved_texts,
    "capacity": _capacity_texts,
}

STUDY: Final = Study(size=AttacksSize, tasks=tasks, measure=measure, show=show, estimate_s={"virtual": 600.0})
