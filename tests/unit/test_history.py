"""The history of events is numbered, kept on disk, and limited to the last `KEPT` events of its lab."""

from __future__ import annotations

from pathlib import Path

from loko.serve.history import KEPT, History
from loko.serve.outcome import Happening
from loko.serve.store import Store


def happening(text: str) -> Happening:
    return Happening(kind="flow", name="a", text=text, warning=True)


def test_numbers_go_on_after_a_restart(tmp_path: Path) -> None:
    history = History()
    with Store(tmp_path / "s", lab="two-switch", options={}) as store:
        store.write([history.add(happening(str(number)), at_ms=number) for number in range(KEPT + 5)])
    with Store(tmp_path / "s", lab="two-switch", options={}) as store:
        again = History(store.notes())
    assert again.values() == history.values()
    assert len(again.values()) == KEPT
    assert again.values()[-1] == {
        **{"number": KEPT + 5, "at_ms": KEPT + 4, "kind": "flow", "name": "a"},
        **{"text": str(KEPT + 4), "warning": True},
    }
    assert again.add(happening("later"), at_ms=0).number == KEPT + 6


def test_what_happened_in_another_lab_is_forgotten(tmp_path: Path) -> None:
    with Store(tmp_path / "s", lab="two-switch", options={}) as store:
        store.write([History().add(happening("here"), at_ms=1)])
    with Store(tmp_path / "s", lab="two-switch", options={"scheme": "loko"}) as store:
        assert len(store.notes()) == 1
    with Store(tmp_path / "s", lab="ring", options={}) as store:
        assert store.notes() == []
