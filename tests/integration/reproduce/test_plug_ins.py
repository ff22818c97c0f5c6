"""Figure types of other packages: the template works as it is, and what cannot work is one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from plugged_in import EXAMPLES, forget, install, install_template, loko, refused

from loko.document import PROFILES

NAME = "loko-table-walk"
GROUP = "loko_testbed.figure_types"
HALF = """
kind: admission
figure: half
paper: loko
title: Flows by another scheme
lab: ring
modes: [virtual]
ours: true
reference: ours
frame_bytes: 306
entries: 17
requests: 10
runs: 1
hops: [0]
rate_kbps: [750, 1000]
burst_bytes: 306
schemes: [half-rate-robust]
reservations: [heartbeat]
shows: use
quick: {runs: 1, hops: [0]}
claims:
  - claim: no switch gives away more than half of its rate
    fact: fig20a/rate-use
    paper: 49 %
    check: {kind: at_most, finding: largest_rate_use_percent, value: 50}
"""
POINTS = {GROUP: {"table_walk": "loko_table_walk.compute:FIGURE_TYPE"}}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with the template as `pip install` leaves it."""
    folder = tmp_path / "site"
    assert install_template(folder, EXAMPLES / "figure-type") == NAME
    return folder


def test_the_template_is_a_figure_like_ours(site: Path, tmp_path: Path) -> None:
    done = loko(site, "evaluate", "tablewalk", "--out", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stderr
    (claim,) = json.loads(done.stdout)["figures"][0]["claims"]
    assert (claim["kind"], claim["holds"]) == ("ours", True)
    result = json.loads((tmp_path / "out/tablewalk.json").read_text())
    assert result["provenance"]["versions"]["loko-table-walk"] == "1.0"
    assert (tmp_path / "out/tablewalk.svg").is_file()
    assert "loko/tablewalk" in loko(site, "figures", "--csv").stdout


def test_another_version_computes_its_figures_again(site: Path, tmp_path: Path) -> None:
    words = ("evaluate", "tablewalk", "--quick", "--out", tmp_path / "out")
    assert loko(site, *words).returncode == 0
    code = site / "loko_table_walk/compute.py"
    code.write_text(code.read_text().replace("fastest / slowest", "7.0"))

    def slowdown() -> float:
        assert loko(site, *words).returncode == 0
        found = json.loads((tmp_path / "out/tablewalk.json").read_text())["findings"]
        return float(found["slowdown"])

    assert slowdown() != 7.0
    forget(site, NAME)
    install(site, NAME, "1.1", POINTS)
    assert slowdown() == 7.0


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ({"table_walk": "loko_table_walk.compute:NOTHING"}, "of loko-table-walk 1.0: cannot be loaded"),
        (
            {"table_walk": "loko_table_walk.compute:compute"},
            "loko_table_walk.compute:compute is no FigureType",
        ),
        ({"table_walk": "nowhere.at_all:FIGURE_TYPE"}, "there is no module nowhere.at_all"),
        ({"table_walk": "nowhere:FIGURE_TYPE"}, "there is no module nowhere"),
        ({"traffic": "loko_table_walk.compute:FIGURE_TYPE"}, "is the name of one of our figure types"),
    ],
)
def test_a_plug_in_that_cannot_work_is_one_line(
    site: Path, tmp_path: Path, points: dict[str, str], said: str
) -> None:
    forget(site, NAME)
    install(site, NAME, "1.0", {GROUP: points})
    told = refused(loko(site, "evaluate", "tablewalk", "--out", tmp_path / "out"))
    assert told.startswith("plug-in '")
    assert said in told


def test_two_packages_with_one_name_are_told(site: Path, tmp_path: Path) -> None:
    install(site, "loko-other", "2.0", POINTS)
    told = refused(loko(site, "evaluate", "tablewalk", "--out", tmp_path / "out"))
    assert told.startswith("plug-in 'table_walk' is of both loko-other 2.0 and loko-table-walk 1.0")


def test_results_name_the_packages_of_schemes_and_devices(site: Path, tmp_path: Path) -> None:
    install_template(site, EXAMPLES / "device")
    install_template(site, EXAMPLES / "scheme")
    profile = (PROFILES / "zodiac-fx.toml").read_text().replace('name = "zodiac-fx"', 'name = "acme-fx"')
    (site / "loko_acme_switches/acme-fx.toml").write_text(profile)
    figures = site / "loko_table_walk/experiments"
    walk = (figures / "tablewalk.yml").read_text().replace("profile: zodiac-fx", "profile: acme-fx")
    (figures / "tablewalk.yml").write_text(walk)
    (figures / "half.yml").write_text(HALF)
    done = loko(site, "evaluate", "tablewalk", "half", "--quick", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr

    def packages(figure: str) -> set[str]:
        versions = json.loads((tmp_path / "out" / f"{figure}.json").read_text())["provenance"]["versions"]
        return {
            name for name in (NAME, "loko-half-rate", "loko-acme-switches") if versions.get(name) == "1.0"
        }

    assert packages("tablewalk") == {NAME, "loko-acme-switches"}
    assert packages("half") == {"loko-half-rate"}
