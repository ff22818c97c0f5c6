"""The history of events is numbered, kept on disk, and limited to the last `CAPACITY` events of its lab."""

from __future__ import annotations

from pathlib import Path

from loko.service.history import CAPACITY, EventLog
from loko.service.outcome import Event
from loko.service.store import Store


def event(text: str) -> Event:
    return Event(kind="flow", name="a", text=text, warning=True)


def test_numbers_go_on_after_a_restart(tmp_path: Path) -> None:
    history = EventLog()
    with Store(tmp_path / "s", lab="two-switch", options={}) as store:
        store.write([history.add(event(str(number)), at_ms=number) for number in range(CAPACITY + 5)])
    with Store(tmp_path / "s", lab="two-switch", options={}) as store:
        again = EventLog(store.notes())
    assert again.values() == history.values()
    assert len(again.values()) == CAPACITY
    assert again.values()[-1] == {
        **{"number": CAPACITY + 5, "at_ms": CAPACITY + 4, "kind": "flow", "name": "a"},
        **{"text": str(CAPACITY + 4), "warning": True},
    }
    assert again.add(event("later"), at_ms=0).number == CAPACITY + 6


def test_what_happened_in_another_lab_is_forgotten(tmp_path: Path) -> None:
    with Store(tmp_path / "s", lab="two-switch", options={}) as store:
        store.write([EventLog().add(event("here"), at_ms=1)])
    with Store(tmp_path / "s", lab="two-switch", options={"scheme": "loko"}) as store:
        assert len(store.notes()) == 1
    with Store(tmp_path / "s", lab="ring", options={}) as store:
        assert store.notes() == []
