"""The reduced design is much smaller than Table 1 and identifies the same costs."""

from __future__ import annotations

from loko_testbed.cli.bench.progress import announcement
from loko_testbed.measure.bench import campaign
from loko_testbed.measure.bench.cost_model.cost_terms import frame_terms, trial_terms
from loko_testbed.measure.bench.cost_model.estimate import CostObservation, solve
from loko_testbed.measure.bench.cost_model.profile_document import quantities
from loko_testbed.measure.bench.device_choice import form_of
from loko_testbed.measure.bench.part import ROUNDS, Design
from loko_testbed.measure.bench.procedures import (
    PROCEDURES,
    buffer,
    cp_time,
    cp_time13,
    dp_time13,
    throughput,
)
from loko_testbed.measure.bench.procedures.dp_time import chosen_tables
from loko_testbed.tasks.progress import format_duration

OFFSETS = {name: cost["offset_bytes"] for name, cost in form_of("zodiac-fx")["cpu"]["action"].items()}


def identified(design: Design) -> tuple[set[str], int]:
    """Return the CPU costs that a design identifies by itself, and its number of cases."""
    cases = [(table, size) for table, sizes in chosen_tables(design) for size in sizes]
    solution = solve([CostObservation(frame_terms(table, size, OFFSETS), 1.0) for table, size in cases])
    return set(solution.estimates), len(cases)


def test_the_reduced_design_tells_what_the_full_one_tells() -> None:
    full, cases = identified(Design.FULL)
    reduced, fewer = identified(Design.REDUCED)
    assert cases == 12_096
    assert fewer * 100 < cases
    assert reduced == full


def test_a_campaign_in_openflow_13_tells_every_cost_but_one() -> None:
    """Costs shared with 1.0 are given. A field that the firmware does not know never matches."""
    terms = [trial_terms(trial) for trial in dp_time13.trials()]
    terms += [question.terms for question in cp_time13.questions()]
    shared = ("cpu.base_ps", "cpu.per_byte_ps", "cpu.control.segment_ps")
    solution = solve(
        [CostObservation(costs_met, 1.0) for costs_met in (*terms, *({name: 1.0} for name in shared))]
    )
    costs = dict(quantities(form_of("zodiac-fx")["cpu"]["openflow13"], "cpu.openflow13."))
    assert costs.keys() - solution.estimates.keys() == {"cpu.openflow13.unsupported.passes_ps"}
    assert solution.unidentified == ()


def test_each_table_of_a_design_is_there_once() -> None:
    for design in Design:
        keys = [str(part.key) for part in campaign.parts(PROCEDURES, samples=3, design=design)]
        assert len(keys) == len(set(keys))


def test_a_reduced_campaign_is_part_of_the_full_one() -> None:
    """The full campaign can reuse its samples. Only the reduced one measures messages in more rounds."""
    full, reduced = (
        {part.key for part in campaign.parts(PROCEDURES, samples=3, design=design)}
        for design in (Design.FULL, Design.REDUCED)
    )
    more = {
        cp_time.PROCEDURE.key(question.name, turn=turn)
        for question in cp_time.questions()
        for turn in range(1, ROUNDS)
    }
    assert reduced & more
    assert reduced - more < full


def test_the_extremes_of_throughput_are_in_the_reduced_design() -> None:
    tables = throughput.throughput_tables()
    chosen = [table for table in tables if throughput.chosen_sizes(Design.REDUCED, table)]
    assert {table.entries for table in chosen} == {1, 128}


def test_time_is_announced_as_people_say_it() -> None:
    assert [format_duration(seconds) for seconds in (0.2, 40, 300, 5400, 8000)] == [
        "1 s",
        "40 s",
        "5 min",
        "1 h 30 min",
        "2 h 13 min",
    ]
    todo = campaign.parts((buffer.PROCEDURE,), samples=3)
    assert announcement(todo, set(), real_time=False) == f"{len(todo)} parts to measure"
    line = announcement(todo, {todo[0].key}, real_time=True)
    assert line.startswith(f"{len(todo) - 1} parts to measure, 1 are there already; about ")
    assert announcement(todo, {part.key for part in todo}, real_time=True).startswith("0 parts to measure")
