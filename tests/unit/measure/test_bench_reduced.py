"""The reduced campaign finds that a board in virtual time satisfies Loko's preconditions."""

from __future__ import annotations

from pathlib import Path

from loko.switch_model.device import profile_text
from loko_testbed.measure.bench.campaign import run
from loko_testbed.measure.bench.preconditions import preconditions, reduced_parts
from loko_testbed.measure.bench.store import SampleStore
from loko_testbed.measure.bench.virtual import VirtualDevice


def test_the_board_satisfies_the_preconditions(tmp_path: Path) -> None:
    # The timers' 100 us are an assumption. They would delay a short frame that meets them, so they are off.
    quiet = tmp_path / "quiet.toml"
    quiet.write_text(profile_text("zodiac-fx", cost_ps=0))
    device = VirtualDevice(str(quiet), seed=1)
    store = SampleStore(tmp_path, {})
    todo = reduced_parts()
    run(device, todo, store, seed=1, on_part=lambda _: None)
    judged = preconditions(store.samples(part.key for part in todo), device.wire)
    assert [
        (precondition.name, precondition.holds) for precondition in judged if not precondition.holds
    ] == []
    assert "64 bytes: 25 frames; 306 bytes: 9 frames; 1516 bytes: 3 frames" in judged[-1].measured
