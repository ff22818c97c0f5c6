"""The role `evaluation` with an inventory of a bench, up to the first access to a board."""

from __future__ import annotations

import json

import pytest
import yaml
from disposable_root import ROOT
from roles_play import play


@pytest.fixture
def words(tmp_path):
    """Return a function that gives the playbook's arguments for a cabling with s1 as a real board."""

    def with_cabling(cabling):
        inventory = yaml.safe_load((ROOT / "playbooks/inventories/hardware/hosts.yml").read_text())
        inventory["testbed"]["hosts"]["bench"]["testbed_cabling"] = cabling
        inventory["boards"]["hosts"] = {}
        hosts = tmp_path / "hosts.yml"
        hosts.write_text(yaml.safe_dump(inventory))
        chosen = {"mode": "hardware", "figures": "fig17a", "out": str(tmp_path / "results")}
        return ["-i", hosts, "playbooks/evaluate.yml", "--tags", "evaluation", "-e", json.dumps(chosen)]

    return with_cabling


def test_check_mode_only_tells(tmp_path, words):
    told = play(tmp_path, [*words({"s1": {1: "card1", 4: "card4"}}), "--check"])
    assert "evaluation : Would replay (hardware)" in told.changed, told.output
    assert not (tmp_path / "results").exists()


def test_without_a_real_board_one_line_says_how_to_name_it(tmp_path, words):
    refused = play(tmp_path, words({}))
    assert refused.status == 2
    assert "no switch of the lab two-switch is a real board: say with --cabling FILE" in refused.complaint
