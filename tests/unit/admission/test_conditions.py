"""Conditions are stated once for each scheme, and say of a network what holds there."""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from loko.admission import Terms
from loko.admission.planning import scenario_of
from loko.admission.port_queues.conditions import CONDITIONS as OF_PORTS
from loko.admission.port_queues.device import port_device, queue_of, table_entries
from loko.admission.schemes import (
    VARIANTS,
    SchemeName,
    SchemeVariant,
    admission_of,
    conditions_of,
    variant_named,
)
from loko.schedule.conditions import CONDITIONS as OF_SLOTS
from loko.switch_model.device import GenericSwitch, load_device
from loko.topology.lab import Lab, load_lab
from loko.topology.requests import load_requests
from loko_testbed.cli.main import app

SCHEMES = (
    "full-rate",
    "packet-granular",
    "packet-granular-joint",
    "ports",
    "ports-whole-paths",
    "mixed",
    "silo",
    "qjump",
)


def terms(lab: Lab) -> Terms:
    return Terms(lab=lab, reserved="heartbeat=0.5", entries=dict.fromkeys(lab.switches, 17))


def ids(scheme: str, lab: str) -> set[str]:
    return set(conditions_of(variant_named(scheme)).ids(terms(load_lab(lab))))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_ids_name_one_condition_each(scheme: str) -> None:
    conditions = conditions_of(variant_named(scheme)).conditions
    assert conditions
    assert len({condition.id for condition in conditions}) == len(conditions)
    assert [one.id for one in conditions if not re.fullmatch(r"[a-z]+(-[a-z]+)*", one.id)] == []
    assert [one.text for one in conditions if not re.fullmatch(r"[A-Z].*\.", one.text)] == []


def test_one_id_has_one_text_in_all_schemes() -> None:
    texts: dict[str, set[str]] = {}
    for choice in VARIANTS.values():
        for condition in conditions_of(choice).conditions:
            texts.setdefault(condition.id, set()).add(condition.text)
    assert {name: said for name, said in texts.items() if len(said) > 1} == {}


def test_a_chip_has_its_own_conditions_and_none_of_the_boards() -> None:
    chip, board = ids("ports", "chip-ring"), ids("full-rate", "two-switch")
    own = {"other-traffic-lowest-queue", "no-jumbo-frames", "no-pause", "uncabled-ports-unused"}
    of_boards = {"only-these-flows", "housekeeping-off", "control-as-reserved", "openflow-version"}
    assert chip - board == own
    assert board - chip == of_boards
    stated = conditions_of(SchemeVariant(scheme=SchemeName.PORTS)).stated(terms(load_lab("chip-ring")))
    said = " ".join(" ".join((condition.text, *condition.details)) for condition in stated)
    assert "1,522 bytes" in said
    assert [word for word in ("OFChecks", "Nothing else is sent", "filled up") if word in said] == []


@pytest.mark.parametrize("scheme", ["full-rate", "packet-granular", "silo", "qjump"])
def test_an_admission_has_the_conditions_of_its_scheme(scheme: str) -> None:
    lab = load_lab("two-switch")
    flows = [request.flow for request in load_requests("labs/two-switch/flows.yml", lab)]
    choice = variant_named(scheme)
    admission = admission_of(lab, choice, scenario_of(flows, entries=17))
    assert admission.conditions is conditions_of(choice)
    assert bool(admission.conditions.baseline) == choice.is_baseline


CHIP_FLOWS = [
    {
        "id": name,
        "source": "H1",
        "destination": "H2",
        "udp_source": number,
        "udp_destination": 9,
        "rate": rate,
        "burst": "2 frames",
        "frame": "306 bytes",
    }
    for number, (name, rate) in enumerate((("fits", "70 Mbit/s"), ("too-much", "2 Gbit/s")), 1)
]


def sheet_of_a_chip(folder: Path, suffix: str) -> Path:
    flows, sheet = folder / "flows.json", folder / f"sheet{suffix}"
    flows.write_text(json.dumps(CHIP_FLOWS))
    result = CliRunner().invoke(app, ["plan", "chip-ring", str(flows), "--sheet", str(sheet)])
    assert result.exit_code == 1, result.output
    return sheet


def test_the_sheet_of_a_chip_states_its_conditions_and_none_of_a_board(tmp_path: Path) -> None:
    text = sheet_of_a_chip(tmp_path, ".html").read_text(encoding="utf-8")
    listed = re.findall(r"<li>.*?\(([a-z-]+)\)", text)
    assert listed == [*OF_PORTS.ids(terms(load_lab("chip-ring"))), "no-slower-than"]
    for said in (
        "All other traffic waits in the lowest queue",
        "more than 1,522 bytes",
        "no jumbo frames",
        "PAUSE is off",
        "Ports to which the lab has no cable stay unused",
        "planned for 1,000 entries",
        "pipeline.latency[0].latency_ns = 3,400 (3,000 to 4,000)",
        "they are other traffic",
    ):
        assert said in text, said
    for said in ("OFChecks", "Nothing else is sent", "17 entries", "static ARP", "nothing on this sheet"):
        assert said not in text, said


def test_a_plan_says_on_which_conditions_it_holds(tmp_path: Path) -> None:
    flows = tmp_path / "flows.json"
    flows.write_text(json.dumps(CHIP_FLOWS))
    words = ["plan", "chip-ring", str(flows)]
    values = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    ids = [condition["id"] for condition in values["conditions"]]
    assert ids == [*OF_PORTS.ids(terms(load_lab("chip-ring"))), "no-slower-than"]
    (line,) = re.findall(r"^holds on condition: (.*)$", CliRunner().invoke(app, words).output, re.M)
    assert line.split(", ") == ids
    assert "baseline" not in values
    rival = ["plan", "two-switch", "labs/two-switch/flows.yml", "--scheme", "silo"]
    assert json.loads(CliRunner().invoke(app, [*rival, "--json"]).stdout)["baseline"]
    lines = CliRunner().invoke(app, [*rival, "--csv"]).output.splitlines()
    assert lines[0].endswith(",baseline")
    assert [line for line in lines[1:] if "do not hold" not in line] == []


NUMBERED = ("ideal-1g", "dell-s3048-on", "dell-s4048-on", "nec-pf5240", "nec-pf5240-long-queues")


def numbers(part: Any, key: str = "") -> list[str]:
    """Return the keys of all numbers in the values of a profile."""
    if isinstance(part, dict):
        own = [key] if {"value", "source"} <= part.keys() else []
        return own + [found for name, inner in part.items() for found in numbers(inner, f"{key}.{name}")]
    if isinstance(part, list):
        return [found for place, inner in enumerate(part) for found in numbers(inner, f"{key}[{place}]")]
    return []


def changed(device: GenericSwitch, key: str, factor: int) -> GenericSwitch:
    """Return the device with one number multiplied, and that number an assumption."""
    values = device.model_dump()
    part: Any = values
    for name in re.findall(r"\w+", key):
        part = part[int(name) if name.isdigit() else name]
    part |= {"value": part["value"] * factor + 1, "source": "assumption", "range": None}
    return GenericSwitch.model_validate(values)


def promised(device: GenericSwitch) -> list[Any]:
    sizes = ((64,), (306, 1516), (1032,))
    ports = [port_device(device, frame_bytes=size, cabled_ports=count) for size in sizes for count in (1, 3)]
    return [
        table_entries(device),
        queue_of(device),
        device.tolerance.cable_ns.value,
        *((port.server, port.room_bytes, port.least_ns(64), port.least_ns(1200)) for port in ports),
    ]


@pytest.mark.parametrize("profile", NUMBERED)
def test_an_assumption_is_stated_if_and_only_if_a_guarantee_by_ports_depends_on_it(profile: str) -> None:
    device = load_device(profile)
    assert isinstance(device, GenericSwitch)
    (condition,) = (one for one in OF_PORTS.conditions if one.id == "as-profiled")
    lab = load_lab("chip-ring")
    for key in [found.lstrip(".") for found in numbers(device.model_dump())]:
        altered = []
        for factor in (0, 2, 100):
            with contextlib.suppress(ValidationError):
                altered.append(changed(device, key, factor))
        matters = any(promised(other) != promised(device) for other in altered)
        of_it = replace(lab, switches={"s1": replace(lab.switches["s1"], profile=altered[0])})
        stated = condition.details(terms(of_it))
        assert matters == any(f"{key} = " in text for text in stated), key


def in_schemes() -> dict[str, tuple[list[str], str]]:
    """Return by id of a condition the schemes that have it, and its text."""
    schemes = {
        "`loko`": conditions_of(variant_named("fifth-rate")),
        "`packets`": conditions_of(variant_named("packet-granular")),
        "`packets` (joint)": conditions_of(variant_named("packet-granular-joint")),
        "`ports`": conditions_of(variant_named("ports")),
        "`ports` (whole paths)": conditions_of(variant_named("ports-whole-paths")),
        "`mixed`": conditions_of(variant_named("mixed")),
        "slots": OF_SLOTS,
        "`silo`": conditions_of(variant_named("silo")),
        "`qjump`": conditions_of(variant_named("qjump")),
    }
    found: dict[str, tuple[list[str], str]] = {}
    for name, conditions in schemes.items():
        for condition in conditions.conditions:
            found.setdefault(condition.id, ([], condition.text))[0].append(name)
    return found


def test_the_page_has_the_table_of_conditions() -> None:
    table = ["| condition | of | what must be true |", "|---|---|---|"]
    table += [f"| `{name}` | {', '.join(of)} | {text} |" for name, (of, text) in in_schemes().items()]
    page = Path("docs/planning.md").read_text(encoding="utf-8")
    assert "\n".join(table) in page, "the table of docs/planning.md should be:\n" + "\n".join(table)
