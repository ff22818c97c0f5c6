"""Stores to try things on: full ones, and those of the service before stores had a version."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from served_boards import OPTIONS, flow

from loko.service.outcome import (
    Delete,
    Event,
    FlowState,
    Insert,
    LoggedEvent,
    PromisedGuarantee,
    StoredFlow,
    UpdateState,
    WriteBacklogs,
)
from loko.service.store import Store
from loko.service.store_document import StoreDocument
from loko.topology.network import Hop

LAB_NAME = "two-switch"
ALL = {**OPTIONS, "openflow": "1.0", "padding": "0", "target-ms": "None", "robust": "no"}
"""The names in a store of admission that knows all options of admission."""
UNVERSIONED = """
CREATE TABLE circumstances (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE flows (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL CHECK (state IN ('accepted', 'installed', 'removing')),
    flow TEXT NOT NULL,
    path TEXT NOT NULL
) STRICT;
CREATE TABLE turns (number INTEGER PRIMARY KEY, slot INTEGER NOT NULL, period_ns INTEGER NOT NULL) STRICT;
CREATE TABLE debts (server TEXT PRIMARY KEY, amount REAL NOT NULL) STRICT;
CREATE TABLE notes (
    number INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    warning INTEGER NOT NULL
) STRICT;
"""


def opened(path: Path, options: Mapping[str, str] = OPTIONS) -> Store:
    return Store(path, lab=LAB_NAME, options=options)


def stored(number: int, *, hops: int = 2) -> StoredFlow:
    """Return a flow as it is stored; with many hops its row fills several pages."""
    return StoredFlow(
        number=number,
        flow=flow(number),
        path=tuple(Hop(switch=f"s{place}", output_port=1 + place % 4) for place in range(1, 1 + hops)),
        state=FlowState.INSTALLED,
        promise=PromisedGuarantee(
            guarantee_ns=4_588_000.5,
            deadline_ns=5e6 if number % 2 else None,
            profiles={"s1": "0123456789abcdef"},
            conditions=("as-profiled",),
        ),
    )


def write_some(store: Store, *, flows: int) -> None:
    """Fill a store, in several transactions, with rows of every table, some changed and some removed."""
    for number in range(1, flows + 1):
        told = Event(kind="flow", name=f"f{number}", text="is in")
        granted = stored(number, hops=200 if number % 20 == 0 else 2)
        store.write(
            [
                Insert(granted),
                WriteBacklogs({f"s{number % 7}": number / 3}),
                LoggedEvent(number, 1000 + number, told),
            ]
        )
    store.write([UpdateState(number, FlowState.REMOVING) for number in range(1, flows, 3)])
    store.write([*(Delete(number) for number in range(1, flows, 5)), WriteBacklogs({"s1": None})])


def full(path: Path, *, flows: int = 60) -> StoreDocument:
    """Create a store in one file; return what it holds."""
    with opened(path) as store:
        write_some(store, flows=flows)
        return store.content()


def killed(path: Path, *, flows: int = 12) -> list[StoreDocument]:
    """Create a store as a kill leaves it, with a log; return what it held after each transaction."""
    living = path.with_name("living.sqlite")
    living.unlink(missing_ok=True)
    contents = []
    with opened(living) as store:
        for number in range(1, flows + 1):
            store.write([Insert(stored(number))])
            contents.append(store.content())
        for end in ("", "-wal"):
            shutil.copy(f"{living}{end}", f"{path}{end}")
    return contents


def unversioned(
    path: Path, *, named: Mapping[str, str], flows: Sequence[int] = (1, 3), last: int = 5
) -> None:
    """Create a store as the service made it before stores had a version."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.executescript(UNVERSIONED)
        database.executemany("INSERT INTO circumstances VALUES (?, ?)", {"lab": LAB_NAME, **named}.items())
        for number in flows:
            granted = stored(number)
            hops = json.dumps(
                [
                    [hop.switch, hop.output_port]
                    for hop in (Hop(switch="s1", output_port=3), Hop(switch="s2", output_port=1))
                ]
            )
            database.execute(
                "INSERT INTO flows VALUES (?, ?, ?, ?, ?)",
                (number, granted.flow.id, "installed", json.dumps(granted.flow._asdict()), hops),
            )
        database.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'flows'", (last,))
        database.execute("INSERT INTO debts VALUES ('s1', 17.5)")
        database.execute("INSERT INTO notes VALUES (7, 1, 'flow', 'f1', 'is installed', 0)")
