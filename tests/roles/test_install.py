"""The roles that install software, on a disposable root without it: announced, done, then unchanged."""

from __future__ import annotations

import pytest
from disposable_root import DisposableRoot
from live_harness import needs_namespaces
from package_source import make_source

pytestmark = [pytest.mark.disposable_root, needs_namespaces, pytest.mark.timeout(900)]

PROVISION = ["playbooks/provision.yml"]
BREAK = """
dpkg --purge --force-depends openvswitch-switch mgen tcpdump
rm "$BUILD/.venv/bin/loko"
echo other sources >"$BUILD/.setup/python.done"
cp "$BUILD/.setup/emulator.done" /tmp
echo other sources >"$BUILD/.setup/emulator.done"
"""
BUILT = 'cp /tmp/emulator.done "$BUILD/.setup"'  # to build it would take minutes
NO_SOURCE = "rm -r /mnt/shared/packages"
CHANGED = [
    "open_vswitch : Install Open vSwitch",
    "mininet : Install Mininet and what a live lab runs",
    "capture : Install the taps",
    "controller : Install the Python environment",
]
BUILDS = "emulator : Build the emulator"
WORKS = "command -v ovs-vswitchd mgen tcpdump && ! pgrep -x ovs-vswitchd"
MENDED = ["--tags", ",".join(task.partition(" : ")[0] for task in CHANGED)]
"""In the other roles, nothing was changed that could be changed again."""


def test_each_role_tells_then_mends_what_is_missing_and_then_changes_nothing(tmp_path):
    """Where all is there, no source of packages is needed."""
    machine = DisposableRoot(tmp_path)
    packages = machine.shared / "packages"
    packages.mkdir()
    use = make_source(packages, ["mgen", "tcpdump", "openvswitch-switch"])
    works = f"({WORKS}) >/dev/null && touch /mnt/shared/works"
    told, done, again = machine.plays(
        use, BREAK, [*PROVISION, "--check"], BUILT, PROVISION, works, NO_SOURCE, [*PROVISION, *MENDED]
    )
    assert (told.status, told.changed) == (0, [*CHANGED, BUILDS]), told.output
    assert (done.status, done.changed) == (0, CHANGED), done.output
    assert (machine.shared / "works").exists()
    assert (again.status, again.changed) == (0, []), again.output
