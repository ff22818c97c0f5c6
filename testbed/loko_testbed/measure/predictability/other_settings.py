"""Settings of a switch that change its buffers: data, with what the paper says of each."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from pydantic import RootModel

from loko.document import LABS, StrictModel, read

_FILE: Final = LABS / "predictability" / "other-settings.yml"


class OtherSetting(StrictModel):
    """A setting that an operator can choose, and the profile of the switch with it."""

    profile: str
    setting: str
    where: str
    sentence: str
    """The paper's statement about it, in our words."""


class _Settings(RootModel[dict[str, OtherSetting]]):
    """The settings by name of the device."""


@cache
def _settings() -> dict[str, OtherSetting]:
    return read(_FILE, _Settings).root


def other_profile(device: str) -> str | None:
    """Return the profile of a device with its other setting; None if it has none that we know."""
    known = _settings().get(Path(device).stem)
    return None if known is None else known.profile
