"""Conditions that tests may rely on where continuous integration runs them."""

from __future__ import annotations

import os
import platform


def has_all_programs() -> bool:
    """Return whether set-up must have installed every program of the tests: on CI under Debian."""
    return os.environ.get("CI") == "true" and platform.freedesktop_os_release()["ID"] == "debian"
