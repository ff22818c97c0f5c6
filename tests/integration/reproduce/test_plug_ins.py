"""Figure types of other packages: the template works as it is, and what cannot work is one line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from disposable_root import ROOT

TEMPLATE = ROOT / "examples/figure-type"
PROJECT = tomllib.loads((TEMPLATE / "pyproject.toml").read_text())["project"]
(GROUP,) = PROJECT["entry-points"]


def install(folder: Path, name: str, version: str, points: dict[str, str]) -> None:
    """Write what an installer writes of a package's entry points."""
    about = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [f"[{GROUP}]", *(f"{point} = {value}" for point, value in points.items())]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")


def loko(site: Path, *words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from loko_testbed.cli.main import main; main()", *map(str, words)]
    return subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(site)}, text=True, capture_output=True, check=False
    )


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with the template as `pip install` leaves it."""
    folder = tmp_path / "site"
    shutil.copytree(TEMPLATE / "loko_table_walk", folder / "loko_table_walk")
    install(folder, PROJECT["name"], PROJECT["version"], PROJECT["entry-points"][GROUP])
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
    shutil.rmtree(next(site.glob("*.dist-info")))
    install(site, PROJECT["name"], "1.1", PROJECT["entry-points"][GROUP])
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
    shutil.rmtree(next(site.glob("*.dist-info")))
    install(site, PROJECT["name"], "1.0", points)
    done = loko(site, "evaluate", "tablewalk", "--out", tmp_path / "out")
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: plug-in '")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


def test_two_packages_with_one_name_are_told(site: Path, tmp_path: Path) -> None:
    install(site, "loko-other", "2.0", PROJECT["entry-points"][GROUP])
    done = loko(site, "evaluate", "tablewalk", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "plug-in 'table_walk' is of both loko-other 2.0 and loko-table-walk 1.0" in done.stderr
