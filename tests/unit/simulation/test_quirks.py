"""Which deviations emulated boards have: settings, options, environment, and the page that lists them."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import switch_emulator

from loko.document import InputError
from loko.topology.lab import Backend, load_lab
from loko_testbed.live.boards import configuration
from loko_testbed.simulation.quirks import (
    VARIABLE,
    check_quirks,
    from_environment,
    with_quirks,
    without,
    without_quirks,
)

PAGE = (Path(__file__).parents[3] / "docs/quirks.md").read_text()
OFF = {"without": ["no-reassembly"]}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("firmware", {"without": ["a", "b"]}),
        ({"without": ["b", "c"]}, {"without": ["b", "c", "a"]}),
        ({"only": ["b", "c"]}, {"only": ["c"]}),
        ("spec", "spec"),
    ],
)
def test_further_deviations_are_switched_off(before: object, after: object) -> None:
    assert without(["a", "b", "a"], before) == after


@pytest.mark.parametrize("quirks", ["firmware", "spec", OFF, {"only": ["no-reassembly"]}, {"without": []}])
def test_a_board_takes_every_form(quirks: object) -> None:
    check_quirks(quirks, "here")


@pytest.mark.parametrize(
    ("quirks", "config", "line"),
    [
        (
            {"without": ["no-reasembly"]},
            {},
            r"here: config: no quirk is called `no-reasembly`; the nearest are no-reassembly, [a-z-]+, .*",
        ),
        ("some", {}, r"here: config: .*some.*firmware.*spec.*without.*only.*"),
        (["no-reassembly"], {}, r"here: config: .*"),
        (
            {"without": ["broken-flow-mods"]},
            {"openflow_version": 4},
            r"here: config, quirks: broken-flow-mods cannot be switched by itself in OpenFlow 1\.3;"
            r" these can: " + ", ".join(switch_emulator.quirk_names(4)),
        ),
        (
            {"only": ["openflow13"]},
            {"openflow_version": 1},
            r"here: config, quirks: openflow13 cannot be switched by itself in OpenFlow 1\.0; these can: .*",
        ),
    ],
)
def test_what_no_board_can_have_is_refused_in_one_line(
    quirks: object, config: dict[str, object], line: str
) -> None:
    with pytest.raises(InputError) as caught:
        check_quirks(quirks, "here", config=config)
    assert re.fullmatch(line, str(caught.value))


def test_a_lab_loses_a_deviation_in_all_its_boards() -> None:
    lab = without_quirks(load_lab("two-switch"), ["no-reassembly"], "--without-quirk")
    assert {json.dumps(switch.config["quirks"]) for switch in lab.switches.values()} == {json.dumps(OFF)}
    further = without_quirks(lab, ["flood-is-all"], "--without-quirk")
    assert further.switches["s1"].config["quirks"] == {"without": ["no-reassembly", "flood-is-all"]}


def test_only_emulated_boards_can_lose_one() -> None:
    lab = load_lab("two-switch")
    real = replace(lab.switches["s1"], backend=Backend.HARDWARE)
    with pytest.raises(InputError, match=r"^quirks: s1 is no emulated Zodiac FX"):
        with_quirks(replace(lab, switches={**lab.switches, "s1": real}), OFF)


def test_the_live_emulator_gets_the_setting_as_toml() -> None:
    lab = with_quirks(load_lab("two-switch"), OFF)
    lines = configuration(lab, {"s1": {}}, controller="127.0.0.1:6633", cpu=None, seed=0, folder=Path("/f"))
    assert tomllib.loads(lines)["board"][0]["config"]["quirks"] == OFF


def test_the_environment_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert from_environment() is None
    monkeypatch.setenv(VARIABLE, json.dumps(OFF))
    assert from_environment() == OFF


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("spec", r"LOKO_QUIRKS: spec is no JSON; .*"),
        ('{"without": ["x"]}', r"LOKO_QUIRKS: config: no quirk .*"),
    ],
)
def test_a_wrong_environment_is_one_line(monkeypatch: pytest.MonkeyPatch, text: str, line: str) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(InputError) as caught:
        from_environment()
    assert re.fullmatch(line, str(caught.value))


def test_the_page_lists_every_name_in_order() -> None:
    section = PAGE.split("## One at a time")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| ([^|]+) \| [^|]+ \| ([^|]+) \|$", section, re.MULTILINE)
    assert [name for name, _, _ in rows] == switch_emulator.quirk_names()
    assert [name for name, _, versions in rows if "1.3" in versions] == switch_emulator.quirk_names(4)
    assert [name for name, _, versions in rows if "1.0" in versions] == switch_emulator.quirk_names(1)


def test_the_page_says_for_each_deviation_what_switches_it() -> None:
    """All that `spec` changes belong to a name, some to two; what it leaves the same belongs to none."""
    section = PAGE.split("## One at a time")[1].split("\n## ")[0]
    listed: list[int] = []
    for numbers in re.findall(r"^\| `[a-z0-9-]+` \| ([^|]+) \|", section, re.MULTILINE):
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", numbers):
            listed += range(int(first), int(last or first) + 1)
    twice = [number for number in set(listed) if listed.count(number) == 2]
    assert sorted(twice) == [5, 22, 71, 72, 73, 199]
    assert len(listed) == len(set(listed)) + len(twice)
    table = PAGE.split("## OpenFlow 1.3")[0]
    changed = {
        int(row[1])
        for row in re.finditer(r"^\| (\d+) \|.*\| ([^|]+) \|$", table, re.MULTILINE)
        if not row[2].startswith("the same")
    }
    assert set(listed) == changed | set(range(84, 190))
