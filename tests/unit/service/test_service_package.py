"""The container image and the Debian package start the service like its own program or the role."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jinja2
import yaml

from loko_testbed.cli.main import load

ROOT = Path(__file__).resolve().parents[3]
SERVICE = ROOT / "setup" / "service"
ROLE = ROOT / "playbooks" / "roles" / "controller"
KNOWN = {"ARG", "FROM", "RUN", "COPY", "USER", "ENV", "WORKDIR", "VOLUME", "EXPOSE", "STOPSIGNAL"}
KNOWN |= {"HEALTHCHECK", "ENTRYPOINT", "CMD"}


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n\s*", " ", (SERVICE / "Containerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split()[0], line.partition(" ")[2].strip()) for line in lines]


def settings(text: str) -> list[str]:
    joined = text.replace("\\\n", "")
    return [line for line in joined.splitlines() if line and not line.startswith(("#", "["))]


def test_the_image_has_only_known_instructions_and_ends_as_an_ordinary_user() -> None:
    assert {name for name, _ in instructions()} <= KNOWN
    (user,) = [said for name, said in instructions() if name == "USER"]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)


def test_what_the_image_runs_is_a_command_that_exists_at_the_ports_that_it_exposes() -> None:
    said = dict(instructions())
    assert json.loads(said["ENTRYPOINT"]) == ["loko"]
    command, lab, *words = json.loads(said["CMD"])
    assert (command, lab) == ("serve", "two-switch")
    options = {option for parameter in load(command).params for option in parameter.opts}
    given = dict(zip(words[::2], words[1::2], strict=True))
    assert set(given) <= options
    assert said["EXPOSE"].split() == [given[name].rpartition(":")[2] for name in ("--rest", "--listen")]
    assert given["--store"].startswith(said["VOLUME"] + "/")
    (check,) = re.findall(r"CMD (\[.*\])", said["HEALTHCHECK"])
    compile(json.loads(check)[2], "health", "exec")


def test_the_unit_of_the_package_is_that_of_the_role_for_any_lab() -> None:
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
    template = jinja2.Template((ROLE / "templates" / "loko.service.j2").read_text(), trim_blocks=True)
    of_role = template.render(
        {
            **defaults,
            "controller_service_program": "/usr/bin/loko",
            "controller_service_lab": "two-switch",
            "controller_service_watchdog_s": 30,
        }
    )
    ours = (SERVICE / "loko@.service").read_text()
    ours = ours.replace("loko-%i", "loko").replace("%i", "two-switch")
    same = [re.sub(r'"|\s+(?= )', "", line) for line in settings(of_role)]
    assert [line for line in settings(ours) if not line.startswith("Documentation=")] == same
