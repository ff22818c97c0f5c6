"""The script that brings a report's pictures to life, and where it is kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from loko_testbed.reproduce.plots import rendering


@pytest.fixture
def bundled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A bundler that takes no time, and notes each call."""
    calls: list[str] = []

    def bundle(snippet: str, **_: object) -> str:
        calls.append(snippet)
        return f"/* </script */ {snippet}"

    monkeypatch.setattr(rendering.vl_convert, "javascript_bundle", bundle)
    rendering.vega_embed.cache_clear()
    yield calls
    rendering.vega_embed.cache_clear()


def test_it_is_bundled_once_and_kept_for_other_processes(
    bundled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = rendering.vega_embed()
    assert "</script" not in first
    rendering.vega_embed.cache_clear()
    assert rendering.vega_embed() == first
    assert len(bundled) == 1


def test_a_user_without_a_home_has_it_too(bundled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(rendering.Path, "home", no_home)
    assert "vegaEmbed" in rendering.vega_embed()
    assert len(bundled) == 1
