"""The oldest supported Ansible, that of Debian 12, reads and runs all playbooks."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from ansible_program import OLDEST
from disposable_root import DisposableRoot
from live_harness import needs_namespaces
from roles_play import play, play_each

ROOT = Path(__file__).resolve().parents[3]
PLAYBOOKS = [ROOT / "evaluate.yml", *sorted(ROOT.glob("playbooks/*.yml"))]
INVENTORIES = sorted(ROOT.glob("playbooks/inventories/*"))
LOCK = (ROOT / "setup/requirements-ansible.lock").read_text(encoding="utf-8")
[OLDEST_VERSION] = re.findall(r"^ansible-core==(\d+\.\d+)\.\d+", LOCK, re.MULTILINE)

# The system's interpreter, as if Ansible were installed with the system. Ansible would not find an
# interpreter in a folder whose name contains a space.
OF_THE_SYSTEM = ("-e", "ansible_python_interpreter=/usr/bin/python3")

needs_oldest = pytest.mark.skipif(
    not OLDEST.exists(),
    reason=f"needs Ansible {OLDEST_VERSION}, which needs Python 3.9 to 3.11: 'make clients'",
)


def test_what_is_stated_everywhere_is_what_is_tested():
    stated = {
        str(path.relative_to(ROOT)): yaml.safe_load(path.read_text())["galaxy_info"]["min_ansible_version"]
        for path in ROOT.glob("playbooks/roles/*/meta/main.yml")
    }
    assert len(stated) > 1
    assert set(stated.values()) == {OLDEST_VERSION}, stated
    refused = (ROOT / "playbooks/evaluate.yml").read_text()
    assert f"is version('{OLDEST_VERSION}', '<')" in refused
    assert f"this needs ansible-core {OLDEST_VERSION} or newer" in refused
    assert f"any from {OLDEST_VERSION} on does" in (ROOT / "docs/provisioning.md").read_text()


@needs_oldest
def test_it_is_that_version():
    done = subprocess.run([OLDEST, "--version"], capture_output=True, text=True, check=True)
    assert f"[core {OLDEST_VERSION}." in done.stdout


@needs_oldest
def test_it_reads_every_playbook_and_inventory():
    words = [OLDEST, *(f"--inventory={inventory}" for inventory in INVENTORIES), "--syntax-check", *PLAYBOOKS]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stderr


@needs_oldest
def test_a_figure_is_replayed(tmp_path):
    words = ["playbooks/evaluate.yml", "--tags", "evaluation", "-e", "mode=virtual", "-e", "figures=table2"]
    ran = play(tmp_path, [*words, *OF_THE_SYSTEM, "-e", f"out={tmp_path}/results"], program=OLDEST)
    assert ran.status == 0, ran.output
    assert (tmp_path / "results/virtual/table2.json").is_file()


WRONG = {
    "runs=0 seconds=2": "runs=0: give a whole number",
    "figures=fig99": "there is no figure fig99",
    "mode=quick": "value of evaluation_mode must be one of: all, virtual, live, hardware",
}


@needs_oldest
def test_variables_of_the_replay_are_judged_in_check_mode(tmp_path):
    ran = play_each(tmp_path, ["evaluate.yml", "--check", *OF_THE_SYSTEM], WRONG, program=OLDEST)
    assert ran.status == 2
    for chosen, said in WRONG.items():
        complaint = ran.on(chosen).complaint
        assert said in complaint
        assert "seconds=2:" not in complaint


@needs_oldest
@needs_namespaces
@pytest.mark.disposable_root
@pytest.mark.timeout(900)
def test_it_provisions_and_finds_nothing_to_do_where_all_is_there(tmp_path):
    [done] = DisposableRoot(tmp_path).plays(["playbooks/provision.yml", *OF_THE_SYSTEM], program=OLDEST)
    assert (done.status, done.changed) == (0, []), done.output
