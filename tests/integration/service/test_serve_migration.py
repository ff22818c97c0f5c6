"""A slower profile under flows that were granted: the service says what breaks, and waits for a decision."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import httpx
import preloaded
from in_process import loko
from served_lab import ServedLab, wait_for

from loko.document import LABS
from loko.switch_model.device import profile_text

DEADLINE_NS = 5_000_000


def lab_with_own_profile(folder: Path) -> Path:
    """Write the lab of two switches with a profile of its own beside it; return the profile."""
    folder.mkdir()
    text = (LABS / "two-switch" / "lab.yml").read_text(encoding="utf-8")
    (folder / "lab.yml").write_text(
        text.replace("profile: zodiac-fx", "profile: ./own.toml"), encoding="utf-8"
    )
    (folder / "own.toml").write_text(profile_text("zodiac-fx"), encoding="utf-8")
    return folder / "own.toml"


def ended(lab: ServedLab, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the service with further options until it ends by itself."""
    words = ["serve", lab.lab, "--store", lab.folder / "flows.sqlite", *options]
    words += ["--rest", f"127.0.0.1:{lab.rest}", "--listen", f"127.0.0.1:{lab.openflow}"]
    return preloaded.loko(*words)


def test_a_slower_profile_breaks_no_promise_silently(tmp_path: Path) -> None:
    profile = lab_with_own_profile(tmp_path / "lab")
    with ServedLab(tmp_path, lab=str(tmp_path / "lab")) as lab:

        def answers() -> bool:
            try:
                return bool(lab.flows())
            except httpx.TransportError:
                assert lab.process is not None
                assert lab.process.poll() is None, lab.log()
                return False

        answer = lab.post(1, deadline_ns=DEADLINE_NS).json()
        assert answer["promised_ns"] == answer["guarantee_ns"] < answer["deadline_ns"] == DEADLINE_NS
        assert lab.post(2, deadline_ns=20 * DEADLINE_NS).status_code == httpx.codes.CREATED
        assert lab.end() == 0

        slower = profile_text("zodiac-fx", "cpu.entry", base_ps=12_000_000)
        profile.write_text(slower, encoding="utf-8")
        refused = ended(lab)
        assert refused.returncode == 2
        errors = [line for line in refused.stderr.splitlines() if line.startswith("error: ")]
        assert [line.split(" ms in place")[0].split(" gets")[0] for line in errors] == [
            "error: stored flow 'f1'",
            "error: stored flow 'f2'",
        ]
        assert "the profile of s1, s2 has changed" in errors[0]
        assert "Traceback" not in refused.stderr

        assert "add --migrate" in errors[0]
        shown = ended(lab, "--migrate", "--json")
        assert shown.returncode == 1
        found = json.loads(shown.stdout)
        assert (found["profiles"], found["breaking"], found["differences"]) == (["s1", "s2"], 1, [])
        assert [one["fate"] for one in found["flows"]] == ["broken", "raised"]
        assert found["flows"][0]["guarantee_ns"] > DEADLINE_NS > found["flows"][0]["promised_ns"]
        told = ended(lab, "--migrate")
        assert told.returncode == 1
        assert told.stdout.splitlines()[-2] == "1 of 2 promises break"
        assert "add --yes to switch over" in told.stdout.splitlines()[-1]

        for options in (("--migrate", "--yes"), ()):
            lab.options = options
            lab.start()
            wait_for(answers, "REST", lab.log)
            wait_for(
                lambda: all(switch["complete"] for switch in lab.switches().values()), "the tables", lab.log
            )
            first, second = lab.flows()
            assert [one["cause"] for one in first["broken"]] == ["guarantee-raised"]
            assert (
                first["guarantee_ns"] > first["deadline_ns"] > first["promised_ns"] == answer["promised_ns"]
            )
            assert (second["broken"], second["promised_ns"]) == ([], second["guarantee_ns"])
            health = lab.client.get("/healthz")
            assert (health.status_code, health.json()["broken"]) == (503, {"guarantee-raised": 1})
            if options:
                assert lab.end() == 0
        assert lab.client.delete("/v1/flows/f1").status_code == httpx.codes.NO_CONTENT
        lab.wait_healthy()


def test_what_goes_with_a_migration_is_refused_without_one(tmp_path: Path) -> None:
    for option in ("--yes", "--json"):
        done = loko("serve", "two-switch", "--store", tmp_path / "s", option)
        assert (done.returncode, done.stderr) == (
            *(2, "error: --yes, --json, --csv: go with --migrate; add it, or leave them out\n"),
        )
    done = loko("serve", "two-switch", "--store", tmp_path / "s", "--migrate")
    assert (done.returncode, done.stderr) == (2, f"error: store {tmp_path / 's'}: no such file\n")
