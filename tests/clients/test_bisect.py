"""The quirk that the page names for a controller of strangers is the one that stops it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import outcomes
import pytest
from programs import INSTALLED, PROGRAMS
from reserved_port import ReservedPort

SECTION = outcomes.DOCUMENT.read_text().split("## Which quirk stops a controller\n")[1].split("\n## ")[0]


@pytest.mark.waits
@pytest.mark.parametrize("quirks", ["all", "without the one that is named"])
def test_the_check_of_the_page_passes_without_the_quirk(quirks: str, tmp_path: Path) -> None:
    if missing := PROGRAMS["pox-tutorial"].missing():
        pytest.skip(missing)
    (named,) = re.findall(r"^    ([a-z0-9-]+) breaks the check", SECTION, re.MULTILINE)
    code = re.search(r"(?:^    .*\n|^\n(?=    ))+", SECTION, re.MULTILINE)
    assert code is not None
    held = ReservedPort()
    (tmp_path / "test_hub.py").write_text(textwrap.dedent(code[0]).replace("6653", str(held.number)))
    (tmp_path / "pox").symlink_to(INSTALLED / "pox")
    environment = {
        "LOKO_QUIRKS": '"firmware"' if quirks == "all" else f'{{"without": ["{named}"]}}',
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": "loko_testbed.live.emulation.pytest_plugin",
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "test_hub.py"],
        cwd=tmp_path,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    held.release()
    assert done.returncode == (1 if quirks == "all" else 0), done.stdout
