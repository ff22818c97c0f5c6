"""Conditions are stated once for each scheme, and say of a network what holds there."""

from __future__ import annotations

import re

import pytest

from loko.admission import Terms
from loko.lab import Lab, load_lab
from loko.planning import scenario_of
from loko.requests import load_requests
from loko.schemes import CHOICES, Choice, SchemeName, admission_of, choice_named, conditions_of

SCHEMES = ("full-rate", "packet-granular", "packet-granular-joint", "ports", "silo", "qjump")


def terms(lab: Lab) -> Terms:
    return Terms(lab=lab, reserved="heartbeat=0.5", entries=dict.fromkeys(lab.switches, 17))


def ids(scheme: str, lab: str) -> set[str]:
    return set(conditions_of(choice_named(scheme)).ids(terms(load_lab(lab))))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_ids_name_one_condition_each(scheme: str) -> None:
    conditions = conditions_of(choice_named(scheme)).conditions
    assert conditions
    assert len({condition.id for condition in conditions}) == len(conditions)
    assert [one.id for one in conditions if not re.fullmatch(r"[a-z]+(-[a-z]+)*", one.id)] == []
    assert [one.text for one in conditions if not re.fullmatch(r"[A-Z].*\.", one.text)] == []


def test_one_id_has_one_text_in_all_schemes() -> None:
    texts: dict[str, set[str]] = {}
    for choice in CHOICES.values():
        for condition in conditions_of(choice).conditions:
            texts.setdefault(condition.id, set()).add(condition.text)
    assert {name: said for name, said in texts.items() if len(said) > 1} == {}


def test_a_chip_has_its_own_conditions_and_none_of_the_boards() -> None:
    chip, board = ids("ports", "chip-ring"), ids("full-rate", "two-switch")
    own = {"other-traffic-lowest-queue", "no-jumbo-frames", "no-pause", "uncabled-ports-unused"}
    of_boards = {"only-these-flows", "housekeeping-off", "control-as-reserved", "openflow-version"}
    assert chip - board == own
    assert board - chip == of_boards
    stated = conditions_of(Choice(scheme=SchemeName.PORTS)).stated(terms(load_lab("chip-ring")))
    said = " ".join(" ".join((condition.text, *condition.details)) for condition in stated)
    assert "1,522 bytes" in said
    assert [word for word in ("OFChecks", "Nothing else is sent", "filled up") if word in said] == []


@pytest.mark.parametrize("scheme", ["full-rate", "packet-granular", "silo", "qjump"])
def test_an_admission_has_the_conditions_of_its_scheme(scheme: str) -> None:
    lab = load_lab("two-switch")
    flows = [request.flow for request in load_requests("labs/two-switch/flows.yml", lab)]
    choice = choice_named(scheme)
    admission = admission_of(lab, choice, scenario_of(flows, entries=17))
    assert admission.conditions is conditions_of(choice)
    assert bool(admission.conditions.baseline) == choice.is_rival
