"""Every variable of every role is documented with type and default, and no other variables are used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

PLAYBOOKS = Path(__file__).parents[2] / "playbooks"
ROLES = sorted(path for path in (PLAYBOOKS / "roles").iterdir() if path.is_dir())


def load(role, name):
    path = role / name
    return yaml.safe_load(path.read_text()) if path.exists() else {}


def options(role):
    return load(role, "meta/argument_specs.yml")["argument_specs"]["main"]["options"]


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_defaults_and_documentation_agree(role):
    defaults = load(role, "defaults/main.yml") or {}
    documented = {name: option["default"] for name, option in options(role).items() if "default" in option}
    assert defaults == documented


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_every_option_has_a_type_a_description_and_the_roles_name(role):
    for name, option in options(role).items():
        assert name.startswith(f"{role.name}_")
        assert option["type"] in {"str", "int", "float", "bool", "list", "dict", "path"}, name
        assert option["description"], name


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_every_variable_that_tasks_use_is_documented_or_made_by_them(role):
    text = "".join(path.read_text() for path in sorted((role / "tasks").glob("*.yml")))
    made = set(re.findall(rf"^\s*(?:register|loop_var): ({role.name}_\w+)", text, re.MULTILINE))
    made |= set(re.findall(rf"^\s*({role.name}_\w+):", text, re.MULTILINE))
    used = set(re.findall(rf"\b({role.name}_\w+)\b", text)) - set(re.findall(rf"\b({role.name}_\w+)\(", text))
    assert used <= made | set(options(role))


@pytest.mark.parametrize("playbook", sorted(PLAYBOOKS.glob("*.yml")), ids=lambda path: path.name)
def test_every_role_in_a_playbook_has_a_tag_of_its_name(playbook):
    for play in yaml.safe_load(playbook.read_text()):
        for role in play.get("roles", []):
            assert (PLAYBOOKS / "roles" / role["role"]).is_dir()
            assert role["role"] in role["tags"]


@pytest.mark.parametrize("name", ["emulator", "vagrant", "hardware"])
def test_every_inventory_has_machines_and_boards_and_only_documented_variables(name):
    inventory = yaml.safe_load((PLAYBOOKS / "inventories" / name / "hosts.yml").read_text())
    assert set(inventory) == {"testbed", "boards"}
    known = {option for role in ROLES for option in options(role)} | {
        "testbed_root",
        "testbed_build",
        "testbed_cabling",
    }
    for group in inventory.values():
        for variables in (group.get("vars", {}), *(group["hosts"] or {}).values()):
            assert {key for key in variables if not key.startswith("ansible_")} <= known
