"""Schemes and devices of other packages: the templates work as they are, and what cannot work is one line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from disposable_root import ROOT
from plugged_in import EXAMPLES, forget, install, install_template, loko, refused

FLOW = (
    "- {id: voice, source: H1, destination: H3, udp_source: 1, udp_destination: 2, rate_bps: 64000,"
    " burst_bytes: 306, frame_bytes: 306}\n"
)
SCHEME, DEVICE = "loko-half-rate", "loko-acme-switches"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with both templates as `pip install` leaves them."""
    folder = tmp_path / "site"
    assert install_template(folder, EXAMPLES / "scheme") == SCHEME
    assert install_template(folder, EXAMPLES / "device") == DEVICE
    return folder


@pytest.fixture
def flows(tmp_path: Path) -> Path:
    path = tmp_path / "flows.yml"
    path.write_text(FLOW)
    return path


def test_a_scheme_is_chosen_like_ours(site: Path, flows: Path) -> None:
    done = loko(site, "plan", "two-switch", flows, *("--scheme", "half-rate", "--scheme", "loko"), "--json")
    assert done.returncode == 0, done.stderr
    theirs, ours = json.loads(done.stdout)["plans"]
    assert (theirs["scheme"], ours["scheme"]) == ("half-rate", "fifth-rate")
    assert theirs["versions"] == {SCHEME: "1.0"}
    assert "versions" not in ours
    shares = [plan["switches"]["s1"]["max_rate_bps"] for plan in (theirs, ours)]
    assert shares[0] == pytest.approx(2.5 * shares[1])
    replayed = loko(site, "replay", "two-switch", flows, *("--scheme", "half-rate", "--seconds", "0.1"))
    assert replayed.returncode == 0, replayed.stderr
    assert "every guarantee was kept" in replayed.stdout


def test_a_device_is_named_like_ours(site: Path, tmp_path: Path) -> None:
    done = loko(
        site, "lab", "new", "line", "--switches", 2, "--profile", "acme-8p", "--out", tmp_path / "mine"
    )
    assert done.returncode == 0, done.stderr
    assert "profile: acme-8p" in (tmp_path / "mine/lab.yml").read_text()
    flows = tmp_path / "flows.yml"
    assert loko(site, "flows", "example", tmp_path / "mine", "--out", flows).returncode == 0
    replayed = loko(site, "replay", tmp_path / "mine", flows, "--seconds", "0.1")
    assert replayed.returncode == 0, replayed.stderr


def test_help_errors_and_completion_list_them(site: Path, flows: Path) -> None:
    said = re.sub(r"[\s│]+", "", loko(site, "plan", "--help").stdout)
    assert "[loko|packets|ports|mixed|silo|qjump|half-rate]" in said
    assert "acme-8p" in loko(site, "model", "--help").stdout
    assert "half-rate)" in refused(loko(site, "plan", "two-switch", flows, "--scheme", "half"))
    assert "names: acme-8p, " in refused(loko(site, "model", "acme"))
    for words, completed in (("plan --scheme hal", "half-rate"), ("model ac", "acme-8p")):
        told = loko(
            site,
            _LOKO_COMPLETE="complete_bash",
            COMP_WORDS=f"loko {words}",
            COMP_CWORD=str(len(words.split())),
        )
        assert told.stdout.split() == [completed], told.stderr


def test_a_list_of_them(site: Path) -> None:
    listed = json.loads(loko(site, "plug-ins", "--json").stdout)
    assert listed == [
        {"group": "loko.schemes", "name": "half-rate", "package": f"{SCHEME} 1.0", "adds": ["half-rate"]},
        {"group": "loko.devices", "name": "acme", "package": f"{DEVICE} 1.0", "adds": ["acme-8p"]},
    ]
    assert f"{DEVICE} 1.0: device profiles: acme-8p" in loko(site, "plug-ins").stdout


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ({"half-rate": "loko_half_rate.scheme:NOTHING"}, "of loko-half-rate 1.0: cannot be loaded"),
        ({"half-rate": "loko_half_rate.scheme:RULE"}, "loko_half_rate.scheme:RULE is no PluggedInScheme"),
        ({"third-rate": "loko_half_rate.scheme:SCHEME"}, "its admission calls the scheme 'half-rate'"),
        ({"ports": "loko_half_rate.scheme:SCHEME"}, "'ports' is the name of one of our admission schemes"),
        ({"full-rate": "loko_half_rate.scheme:SCHEME"}, "is the name of one of our admission schemes"),
    ],
)
def test_a_scheme_that_cannot_work_is_one_line(
    site: Path, flows: Path, points: dict[str, str], said: str
) -> None:
    forget(site, SCHEME)
    install(site, SCHEME, "1.0", {"loko.schemes": points})
    (name,) = points
    told = refused(loko(site, "plan", "two-switch", flows, "--scheme", name))
    assert told.startswith(f"plug-in '{name}' of {SCHEME} 1.0: ")
    assert said in told


@pytest.mark.parametrize(
    ("module", "old", "new", "said"),
    [
        ("nowhere", "", "", "there is no module nowhere"),
        ("loko_half_rate", "", "", "there is no profile beside loko_half_rate"),
        ("loko_acme_switches", 'name = "acme-8p"', 'name = "acme"', "name: is 'acme', but the file's is"),
        ("loko_acme_switches", "format = 1", "format = 9", "format"),
    ],
)
def test_a_device_that_cannot_work_is_one_line(
    site: Path, module: str, old: str, new: str, said: str
) -> None:
    forget(site, DEVICE)
    install(site, DEVICE, "1.0", {"loko.devices": {"acme": module}})
    profile = site / "loko_acme_switches/acme-8p.toml"
    profile.write_text(profile.read_text().replace(old, new))
    told = refused(loko(site, "model", "acme-8p"))
    assert told.startswith(f"plug-in 'acme' of {DEVICE} 1.0: ")
    assert said in told
    assert told.endswith("; mend or uninstall it")


def test_a_device_with_the_name_of_another_is_refused(site: Path) -> None:
    profile = site / "loko_acme_switches/acme-8p.toml"
    install(site, "loko-other", "2.0", {"loko.devices": {"other": "loko_other"}})
    other = site / "loko_other"
    other.mkdir()
    (other / "__init__.py").touch()
    (other / profile.name).write_bytes(profile.read_bytes())
    told = refused(loko(site, "model", "acme-8p"))
    assert told == f"profile 'acme-8p' is of both {DEVICE} 1.0 and loko-other 2.0; uninstall one"
    (other / profile.name).rename(other / "zodiac-fx.toml")
    told = refused(loko(site, "model", "zodiac-fx"))
    assert "'zodiac-fx' is the name of one of our device profiles" in told


def test_the_commands_of_the_page_do_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command that the page prints, in order; `pip install` is what `install_template` does."""
    site, shell = tmp_path / "site", tmp_path / "shell"
    shell.mkdir()
    monkeypatch.chdir(shell)
    (shell / "examples").symlink_to(EXAMPLES)
    (shell / "flows.yml").write_text(FLOW)
    page = (ROOT / "docs/plug-ins.md").read_text()
    commands = re.findall(r"^    (cp|pip|loko) (.+)$", page, re.MULTILINE)
    assert len(commands) > 8
    for program, rest in commands:
        words = rest.partition("  #")[0].split()
        if program == "pip":
            install_template(site, shell / words[-1])
        elif program == "cp":
            subprocess.run(["cp", *words], check=True)
        else:
            done = loko(site, *words)
            assert done.returncode == 0, (rest, done.stderr)


@pytest.mark.parametrize("template", ["scheme", "device"])
def test_the_tests_of_a_template_pass(site: Path, template: str) -> None:
    environment = os.environ | {
        "PYTHONPATH": str(site),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", EXAMPLES / template / "tests"]
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
