"""The wheel contains what cargo has built, and works in new environments outside the repository.

`make test-wheel` tests the wheel of `make wheel`, and compares its results with those of the tests' build.
Other runs pack that build instead, because the one that is shipped takes minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from dask_cluster import cluster
from elftools.elf.elffile import ELFFile
from session_file import session_file

from benchmarks.builds import BUILD, WORKSPACE, built
from loko_testbed.tasks import provenance

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = "LOKO_SHIPPED_WHEEL" in os.environ
BUILT = built() / "libswitch_emulator.so"
SYSTEM_PYTHON = "/usr/bin/python3"
OTHER_PYTHONS = ("3.12", "3.13", "3.14")
SMALL = ("--mode", "virtual", "--quick", "--runs", "2", "--seconds", "0.05", "--sender", "simple")
FIGURE = ("evaluate", "fig17a", *SMALL, "--out")


def clean_surroundings():
    """Return the environment of a user who has no copy of the repository."""
    ours = ("PYTHON", "LOKO_", "VIRTUAL_ENV", "CARGO_", "GIT_", "COV")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def run(*command, cwd):
    done = subprocess.run(
        command,
        cwd=cwd,
        env=clean_surroundings(),
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def installed(python, wheel, *options, cwd):
    """Install the wheel with packages from uv's cache, which set-up has filled, or else from the registry."""
    uv = shutil.which("uv")
    command = [uv, "pip", "install", "--quiet", "--python", str(python), *options, wheel]
    if subprocess.run([*command, "--offline"], cwd=cwd, capture_output=True, check=False).returncode:
        run(*command, cwd=cwd)


def interpreter(version):
    """Return a Python of this version, from the path, uv or pyenv; None if this machine has none."""
    finding = [shutil.which("uv"), "python", "find", "--no-project", "--no-python-downloads", version]
    found = subprocess.run(finding, capture_output=True, text=True, check=False)
    if found.returncode == 0:
        return found.stdout.strip()
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    return next((str(path) for path in pyenv.glob(f"versions/{version}.*/bin/python")), None)


def build(folder):
    """Make an environment with the wheel and all it needs, and one that borrows the dependencies."""
    if SHIPPED:
        (shipped,) = (BUILD / "dist").glob("loko_testbed-*.whl")
        shutil.copy(shipped, folder)
    else:
        (folder / "target").mkdir()
        (folder / "target/dist").symlink_to(BUILT.parent)
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
            cwd=ROOT,
            env=os.environ | {"CARGO_TARGET_DIR": str(folder / "target")},
            check=True,
            capture_output=True,
        )
    (wheel,) = folder.glob("*.whl")
    for name in ("one", "two", "base"):
        run(shutil.which("uv"), "venv", "--quiet", "--python", SYSTEM_PYTHON, name, cwd=folder)
    python = folder / "one/bin/python"
    installed(python, f"{wheel}[dask,figures]", "--constraint", str(ROOT / "requirements.lock"), cwd=folder)
    installed(folder / "two/bin/python", str(wheel), "--no-deps", cwd=folder)
    constraint = ("--constraint", str(ROOT / "requirements.lock"))
    installed(folder / "base/bin/python", str(wheel), "--compile-bytecode", *constraint, cwd=folder)
    (packages,) = folder.glob("one/lib/python3*/site-packages")
    (others,) = folder.glob("two/lib/python3*/site-packages")
    (others / "others.pth").write_text(f"{packages}\n")


of_what_is_shipped = pytest.mark.skipif(not SHIPPED, reason="compares two builds: make test-wheel")
pytestmark = pytest.mark.skipif(not BUILT.is_file(), reason="the emulator came ready-made (prebuilt/)")


@pytest.fixture(scope="module")
def environments(tmp_path_factory):
    return session_file(tmp_path_factory, "wheel", build)


@pytest.fixture
def loko(environments, tmp_path):
    """Run the command line of the first environment in an empty folder."""

    def call(*words):
        return run(environments / "one/bin/loko", *words, cwd=tmp_path)

    return call


def test_it_is_for_every_python_and_every_linux_that_is_not_too_old(environments):
    (wheel,) = environments.glob("*.whl")
    name, _, python, abi, platform = wheel.stem.split("-")
    assert (name, python, abi) == ("loko_testbed", "cp311", "abi3")
    major, minor = platform.removeprefix("manylinux_").split("_")[:2]
    assert (
        (2, 17)
        <= (int(major), int(minor))
        <= tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")))
    )


def test_it_knows_its_commit_and_what_was_changed(environments, loko):
    assert loko("--version").splitlines()[0] == f"loko 0.1.0 ({provenance.commit()})"
    # This is done in the second environment, which only computes points, and never with this profile.
    (profile,) = environments.glob(
        "two/lib/python3*/site-packages/loko/data/switch-emulator/profiles/hp-2920.toml"
    )
    profile.unlink()
    told = run(environments / "two/bin/loko", "--version", cwd=environments)
    assert told.splitlines()[0].startswith(f"loko 0.1.0 ({provenance.commit()}+")


def test_it_lists_the_figures_of_all_papers_without_mininet(loko):
    figures = {figure["name"] for figure in json.loads(loko("figures", "--json"))}
    assert {"loko/fig17a", "tssdn/table3", "studies/fidelity"} <= figures


def test_it_writes_a_lab_plans_and_replays_it(loko):
    loko("lab", "new", "line", "--switches", "2", "--rate", "95 Mbit/s", "--out", "my lab")
    loko("flows", "example", "my lab", "--out", "my lab/flows.yml")
    assert "2 of 2 fit" in loko("plan", "my lab", "my lab/flows.yml")
    assert "every guarantee was kept" in loko("replay", "my lab", "my lab/flows.yml", "--seconds", "0.1")


def test_the_base_replays_and_takes_less_than_200_mb(environments, tmp_path):
    base = environments / "base"
    loko = base / "bin/loko"
    run(loko, "flows", "example", "two-switch", "--out", "flows.yml", cwd=tmp_path)
    run(loko, "replay", "two-switch", "flows.yml", cwd=tmp_path)
    page = Path(run(loko, "docs", "planning", cwd=tmp_path).strip())
    assert page.is_relative_to(base)
    assert page.read_text() == (ROOT / "docs/planning.md").read_text()
    files = [path for path in base.rglob("*") if path.is_file() and not path.is_symlink()]
    assert sum(path.stat().st_size for path in files) < 200e6


def test_it_runs_without_being_installed(environments, tmp_path):
    (wheel,) = environments.glob("*.whl")
    uvx = (shutil.which("uv"), "tool", "run", "--quiet", "--offline", "--python", SYSTEM_PYTHON)
    constraint = ("--constraints", str(ROOT / "requirements.lock"))
    told = run(
        *uvx, *constraint, "--from", wheel, "loko", "model", "zodiac-fx", "--packet-size", "306", cwd=tmp_path
    )
    assert "rate R = " in told


def test_it_brings_the_emulator_and_its_profiles(environments):
    script = """
import switch_emulator
switch_emulator.Network(1).add_board("s", profile="nec-pf5240")
try:
    switch_emulator.Board("no-such")
except ValueError as error:
    print(error)
"""
    told = run(environments / "one/bin/python", "-c", script, cwd=environments)
    assert f"{environments}/one/lib/" in told
    assert run(environments / "one/bin/zodiac-fx", "--version", cwd=environments).startswith(
        "zodiac-fx 0.1.0"
    )


def results(folder):
    """Return the contents of the result files in a folder by their paths."""
    files = (path for path in folder.rglob("*") if path.suffix in {".json", ".parquet"})
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_its_figures_are_the_same_bytes_on_a_cluster_of_two_environments(environments, loko, tmp_path):
    loko(*FIGURE, "here")
    pythons = [environments / name / "bin/python" for name in ("one", "two")]
    with cluster(tmp_path, pythons=pythons, surroundings=clean_surroundings()) as computers:
        loko(*FIGURE, "there", "--executor", "dask", "--scheduler", computers.address)
    assert (
        json.loads(results(tmp_path / "here")["fig17a.json"])["provenance"]["versions"]["switch_emulator"]
        == "0.1.0"
    )
    assert results(tmp_path / "there") == results(tmp_path / "here")


def code_of(library):
    with library.open("rb") as file:
        return ELFFile(file).get_section_by_name(".text").data()


def test_it_contains_the_build_that_it_is_to_contain(environments):
    (module,) = environments.glob("one/lib/python3*/site-packages/switch_emulator/*.so")
    assert (code_of(module) == code_of(BUILT)) == (not SHIPPED)


@of_what_is_shipped
def test_only_our_own_crates_check_for_overflow_and_none_has_debug_assertions():
    command = ["cargo", "build", "--profile", "dist", "--locked", "--offline", "--message-format", "json"]
    done = subprocess.run(
        [*command, "-p", "zodiac-live", "-p", "zodiac-python"],
        cwd=WORKSPACE,
        env=os.environ | {"CARGO_TARGET_DIR": str(BUILT.parents[1])},
        check=True,
        capture_output=True,
        text=True,
    )
    crates = [message for line in done.stdout.splitlines() if "profile" in (message := json.loads(line))]
    assert not any(crate["profile"]["debug_assertions"] for crate in crates)
    checked = {crate["target"]["name"] for crate in crates if crate["profile"]["overflow_checks"]}
    below = {
        "openflow",
        "of_switch",
        "zodiac_firmware",
        "zodiac_simulator",
        "live_host",
        "slot_sender",
        "zodiac_live",
    }
    assert checked == below | {"zodiac-fx", "switch_emulator"}


@of_what_is_shipped
def test_its_boards_do_the_same_as_those_of_the_tested_build(environments, tmp_path):
    ours, theirs = (
        run(python, ROOT / "tests/harness/random_boards.py", cwd=tmp_path)
        for python in (sys.executable, environments / "one/bin/python")
    )
    assert ours == theirs


@of_what_is_shipped
@pytest.mark.parametrize(
    "figure",
    [
        "loko/fig6b",
        "loko/fig15",
        "loko/fig17a",
        "loko/openflow13",
        "predictability/fig8",
        "slicing/fig2a",
        "slicing/fig6a",
        "tssdn/table2",
    ],
)
def test_its_figures_are_the_same_bytes_as_those_of_the_tested_build(loko, figure, tmp_path):
    options = (figure, "--mode", "virtual", "--quick", "--out")
    loko("evaluate", *options, "theirs")
    run(Path(sys.prefix) / "bin/loko", "evaluate", *options, "ours", cwd=tmp_path)
    assert f"{figure.removeprefix('loko/')}.json" in results(tmp_path / "ours")
    assert results(tmp_path / "theirs") == results(tmp_path / "ours")


@of_what_is_shipped
@pytest.mark.parametrize("version", OTHER_PYTHONS)
def test_another_python_plans_replays_and_computes_the_same_records(version, environments, loko, tmp_path):
    python = interpreter(version)
    if python is None:
        pytest.skip(f"this machine has no Python {version}")
    (wheel,) = environments.glob("*.whl")
    run(shutil.which("uv"), "venv", "--quiet", "--python", python, "other", cwd=tmp_path)
    constraint = ("--constraint", str(ROOT / "requirements.lock"))
    installed(tmp_path / "other/bin/python", f"{wheel}[figures,service]", *constraint, cwd=tmp_path)
    other = tmp_path / "other/bin/loko"
    assert f"python {version}." in run(other, "--version", cwd=tmp_path)
    assert "serve" in run(other, "--help", cwd=tmp_path)
    run(other, "serve", "--help", cwd=tmp_path)
    run(other, "flows", "example", "two-switch", "--out", "flows.yml", cwd=tmp_path)
    for command in ("plan", "replay"):
        run(other, command, "two-switch", "flows.yml", cwd=tmp_path)
    run(other, *FIGURE, "theirs", cwd=tmp_path)
    loko(*FIGURE, "ours")
    assert records(tmp_path / "theirs") == records(tmp_path / "ours") != {}


def records(folder):
    """Return the packet records of results; a result itself names the version of Python."""
    return {name: data for name, data in results(folder).items() if name.endswith(".parquet")}
