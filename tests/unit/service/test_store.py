"""The store of promises on disk: damaged, older, foreign, and in use."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from served_boards import OPTIONS
from served_lab import LOKO
from stores import ALL, full, killed, opened, stored, unversioned
from typer.testing import CliRunner

from loko.document import LABS, InputError
from loko.service import store_file, store_reading, store_schema
from loko.service.outcome import FlowState, Insert
from loko.service.store import StoreError
from loko.service.store_file import reading
from loko.user_error import EnvironmentFaultError
from loko_testbed.cli.main import app


def run(*words: str | Path) -> str:
    """Run a command of `loko` that works; return what it prints."""
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def altered(statement: str) -> Callable[[Path], None]:
    """Return what carries out a statement in a store, as somebody with a shell of SQLite would."""

    def alter(path: Path) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute(statement)

    return alter


def zeroed(begin: int, end: int) -> Callable[[Path], None]:
    def zero(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[begin:end] = bytes(len(data[begin:end]))
        path.write_bytes(data)

    return zero


def foreign(path: Path) -> None:
    path.unlink()
    altered("CREATE TABLE songs (title TEXT)")(path)


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES = {
    "zeroed beginning": (zeroed(0, 4096), "is no store of flows, or its beginning is damaged"),
    "zeroed page": (zeroed(8192, 12288), "is damaged"),
    "empty": (zeroed(0, 0), None),
    "another number": (
        altered("UPDATE flows SET number = 99 WHERE number = 3"),
        "the checksum of a row of flows",
    ),
    "broken JSON": (
        altered("UPDATE flows SET document = '{' WHERE number = 3"),
        "the checksum of a row of flows",
    ),
    "no number": (
        altered("DELETE FROM circumstances WHERE name = 'last-number'"),
        "which number its last flow had",
    ),
    "infinite": (
        altered("UPDATE residual_backlogs SET amount = 9e999"),
        "the checksum of a row of residual_backlogs",
    ),
    "missing column": (altered("ALTER TABLE flows DROP COLUMN state"), "table flows lacks the column state"),
    "surplus column": (
        altered("ALTER TABLE flows ADD COLUMN colour TEXT"),
        "has a column colour that no store has",
    ),
    "missing table": (altered("DROP TABLE residual_backlogs"), "table residual_backlogs is missing"),
    "surplus table": (altered("CREATE TABLE songs (title TEXT)"), "it has a table songs that no store has"),
    "a trigger": (
        altered("CREATE TRIGGER t AFTER INSERT ON flows BEGIN DELETE FROM flows; END"),
        "its tables are not declared as in a store",
    ),
    "earlier version": (
        altered("PRAGMA user_version = 1"),
        "was written by an earlier version of loko; release its flows with that, or give another store",
    ),
    "later version": (altered("PRAGMA user_version = 3"), "was written by a later version of loko"),
    "foreign": (foreign, "is no store of flows; give another file"),
    "folder": (a_folder, "Is a directory; give a file"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_store_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    damage, says = DAMAGES[name]
    path = tmp_path / "flows.sqlite"
    full(path, flows=10)
    if says is None:
        path.write_bytes(b"")
        says = "is empty, so what it held is lost"
    damage(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(InputError) as refused:
        opened(path)
    [line] = refused.value.lines
    assert says in line
    assert str(path) in line
    assert before is None or path.read_bytes() == before, "it is not touched"
    with pytest.raises(InputError), reading(path):
        pass


def test_the_command_ends_with_status_2_and_its_advice_works(tmp_path: Path) -> None:
    """Each part of what is advised is typed in: export what can be read, import it."""
    path = tmp_path / "flows.sqlite"
    held = full(path, flows=10)
    zeroed(0, 100)(path)
    words = [
        LOKO,
        "serve",
        "two-switch",
        "--store",
        str(path),
        "--rest",
        "127.0.0.1:0",
        "--listen",
        "127.0.0.1:0",
    ]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1, ended.stderr
    advised = ended.stderr.partition("'loko ")[2].partition("'")[0].split()
    run(*advised, "--out", tmp_path / "saved.json")
    run("store", "import", tmp_path / "saved.json", tmp_path / "new.sqlite")
    with opened(tmp_path / "new.sqlite") as store:
        assert store.content() == held


def test_a_store_in_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="is no file, so a restart would lose every promise"):
        opened(Path(":memory:"))
    assert list(tmp_path.iterdir()) == []


def test_a_log_without_its_store_is_refused(tmp_path: Path) -> None:
    """SQLite would take it for the log of the new store."""
    killed(tmp_path / "flows.sqlite")
    (tmp_path / "flows.sqlite").unlink()
    with pytest.raises(InputError, match=r"is missing, but its log flows\.sqlite-wal is there"):
        opened(tmp_path / "flows.sqlite")


def test_a_log_that_is_damaged_is_refused(tmp_path: Path) -> None:
    """SQLite ends it at the first damaged page, so that transactions vanish that somebody was told of."""
    path = tmp_path / "flows.sqlite"
    killed(path)
    log = Path(f"{path}-wal")
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    with closing(sqlite3.connect(tmp_path / "flows.sqlite")) as database:
        [count] = database.execute("SELECT count(*) FROM flows").fetchone()
    assert 0 < count < 12, "SQLite itself says nothing"
    killed(path)
    log.write_bytes(data)
    for _ in range(2):
        with pytest.raises(InputError, match=r"is damaged: its log is damaged after \d+ of \d+ pages"):
            opened(path)


@pytest.mark.parametrize("missing", ["openflow", "entries"])
def test_circumstances_missing_from_a_store_are_compared(tmp_path: Path, missing: str) -> None:
    path = tmp_path / "flows.sqlite"
    with opened(path, {name: value for name, value in ALL.items() if name != missing}) as store:
        store.write([Insert(stored(1))])
    with pytest.raises(InputError, match=f"granted without {missing}, not {ALL[missing]}"):
        opened(path, ALL)
    with pytest.raises(InputError, match=r"granted with padding 0, not without"):
        opened(path, {name: value for name, value in ALL.items() if name not in {missing, "padding"}})


# Stores of before there were versions.


@pytest.mark.parametrize("oldest", [False, True])
def test_an_unversioned_store_becomes_one_of_this_version(tmp_path: Path, oldest: bool) -> None:
    path = tmp_path / "flows.sqlite"
    unversioned(path, named=OPTIONS)
    if oldest:  # slots, backlogs and notes came later
        for table in ("turns", "debts", "notes"):
            altered(f"DROP TABLE {table}")(path)
    for _ in range(2):
        with opened(path, ALL) as store:
            assert [(flow.number, flow.flow.id, flow.state) for flow in store.load()] == [
                (1, "f1", FlowState.INSTALLED),
                (3, "f3", FlowState.INSTALLED),
            ]
            assert store.last_number() == 5
            assert store.backlogs() == ({} if oldest else {"s1": 17.5})
            assert len(store.notes()) == (0 if oldest else 1)
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (2,)


def test_an_unversioned_store_is_not_converted_while_another_program_reads_it(tmp_path: Path) -> None:
    """Its log would become that of the new file."""
    path = tmp_path / "flows.sqlite"
    unversioned(path, named=OPTIONS)
    altered("PRAGMA journal_mode = WAL")(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM flows").fetchone()
        with pytest.raises(EnvironmentFaultError, match="database is locked"):
            opened(path, ALL)
    with opened(path, ALL) as store:
        assert len(store.load()) == 2


def test_an_unversioned_store_is_of_promises_for_the_values_of_the_profiles(tmp_path: Path) -> None:
    path = tmp_path / "flows.sqlite"
    unversioned(path, named=OPTIONS)
    with pytest.raises(InputError, match="granted with robust no, not yes; delete them first"):
        opened(path, {**ALL, "robust": "yes"})


def test_an_unversioned_store_may_have_padding_entries(tmp_path: Path) -> None:
    path = tmp_path / "flows.sqlite"
    unversioned(path, named={**OPTIONS, "fillers": "10"})
    with opened(path, {**ALL, "padding": "10"}) as store:
        assert len(store.load()) == 2


@pytest.mark.parametrize(("key", "former"), [("residual_backlogs", "debts"), ("send_slot", "turn")])
def test_an_import_with_a_former_key_is_refused_with_the_present_one(
    tmp_path: Path, key: str, former: str
) -> None:
    full(tmp_path / "flows.sqlite", flows=2)
    document = tmp_path / "flows.json"
    run("store", "export", tmp_path / "flows.sqlite", "--out", document)
    document.write_text(
        document.read_text(encoding="utf-8").replace(f'"{key}"', f'"{former}"'), encoding="utf-8"
    )
    refused = CliRunner().invoke(app, ["store", "import", str(document), str(tmp_path / "new.sqlite")])
    assert refused.exit_code == 2
    assert f"did you mean '{key}'?" in " ".join(refused.output.split())


def test_a_store_of_an_earlier_version_is_not_repaired(tmp_path: Path) -> None:
    path = tmp_path / "flows.sqlite"
    full(path, flows=2)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.create_function("row_checksum", -1, lambda table, *row: store_schema.checksum(table, row))
        database.execute("""UPDATE flows SET document = replace(document, '"send_slot"', '"turn"')""")
        database.execute("UPDATE flows SET checksum = row_checksum('flows', number, id, state, document)")
    refused = CliRunner().invoke(app, ["store", "export", "--repair", str(path)])
    assert refused.exit_code == 2
    assert "was written by an earlier version of loko" in " ".join(refused.output.split())


def test_an_unversioned_store_that_says_no_openflow_version_is_one_of_1_0(tmp_path: Path) -> None:
    path = tmp_path / "flows.sqlite"
    unversioned(path, named=OPTIONS)
    with pytest.raises(InputError, match=r"granted with openflow 1\.0, not 1\.3; delete them first"):
        opened(path, {**ALL, "openflow": "1.3"})


def test_an_unversioned_store_of_slots_has_no_options_of_admission(tmp_path: Path) -> None:
    path = tmp_path / "flows.sqlite"
    named = {"scheme": "s-pr", "schedule": "0123"}
    unversioned(path, named=named)
    altered("INSERT INTO turns VALUES (1, 2, 4000)")(path)
    with opened(path, {**named, "openflow": "1.0"}) as store:
        assert [flow.send_slot for flow in store.load()] == [(2, 4000), None]


UNVERSIONED_DAMAGES = {
    "UPDATE flows SET flow = '{' WHERE number = 3": "what it says of flow 'f3' is no JSON of a flow",
    "UPDATE flows SET flow = replace(flow, '20000.0', 'NaN')": "flow.rate_bps: must be a finite number",
    "UPDATE flows SET path = '[]'": "path: must have at least 1 items",
    "UPDATE flows SET path = '[[1]]'": "is no JSON of a flow",
    "UPDATE flows SET flow = replace(flow, 'H1', '')": None,
    "UPDATE debts SET amount = 9e999": "is not a finite amount",
    "ALTER TABLE flows DROP COLUMN path": "table flows lacks the column path",
    "ALTER TABLE flows ADD COLUMN colour TEXT": "has a column colour",
}


@pytest.mark.parametrize("statement", UNVERSIONED_DAMAGES)
def test_a_damaged_unversioned_store_is_refused_in_one_line(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "flows.sqlite"
    unversioned(path, named=OPTIONS)
    altered(statement)(path)
    says = UNVERSIONED_DAMAGES[statement]
    if says is None:
        with opened(path, ALL) as store:  # the lab says that it has no such host
            assert len(store.load()) == 2
        return
    with pytest.raises(InputError) as refused:
        opened(path, ALL)
    [line] = refused.value.lines
    assert says in line


# While it is in use.


def test_two_services_cannot_use_one_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_file, "_WAIT_S", 0.0)
    with opened(tmp_path / "flows.sqlite"), pytest.raises(InputError, match="another service uses it"):
        opened(tmp_path / "flows.sqlite")
    opened(tmp_path / "flows.sqlite").close()


def test_a_backup_while_the_service_runs_has_all_that_is_in_its_log(tmp_path: Path) -> None:
    path = tmp_path / "flows.sqlite"
    with opened(path) as store:
        store.write([Insert(stored(1)), Insert(stored(2))])
        assert Path(f"{path}-wal").stat().st_size
        run("store", "backup", path, tmp_path / "copy.sqlite")
        with closing(sqlite3.connect(path)) as shell, closing(sqlite3.connect(tmp_path / "other")) as other:
            shell.backup(other)  # the `.backup` of SQLite's own shell
        listed = json.loads(run("store", "list", path, "--json"))
        assert [flow["flow"]["id"] for flow in listed] == ["f1", "f2"]
        assert run("store", "list", path).splitlines() == [
            "f1: installed, s1-s2, guarantee 4.589 ms, deadline 5.000 ms",
            "f2: installed, s1-s2, guarantee 4.589 ms",
            "2 flows, granted with entries 17, lab two-switch",
        ]
        store.write([Insert(stored(3))])
        held = store.content()
    for name in ("copy.sqlite", "other"):
        with opened(tmp_path / name) as copied:
            assert copied.load() == [stored(1), stored(2)]
            copied.write([Insert(stored(3))])
            assert copied.content() == held


def test_what_is_exported_can_be_imported(tmp_path: Path) -> None:
    held = full(tmp_path / "flows.sqlite")
    run("store", "export", tmp_path / "flows.sqlite", "--out", tmp_path / "flows.json")
    assert json.loads(run("store", "export", tmp_path / "flows.sqlite")) == held.model_dump(mode="json")
    run("store", "import", tmp_path / "flows.json", tmp_path / "new.sqlite")
    with opened(tmp_path / "new.sqlite") as store:
        assert store.content() == held


def test_the_commands_on_the_page_run_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    held = full(Path("results/serve/two-switch.sqlite"))
    page = (LABS.parent / "docs" / "service.md").read_text(encoding="utf-8")
    commands = re.findall(r"^    loko (store .*)$", page, re.MULTILINE)
    assert len(commands) == 6
    for command in commands:
        run(*command.split())
    for copied in ("monday.sqlite", "new.sqlite", "results/serve/repaired.sqlite"):
        with opened(Path(copied)) as store:
            assert store.content() == held


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["list", "{}/none"], "store {}/none: no such file"),
        (["list", "{}/text"], "store {}/text: is no store of flows"),
        (["export", "{}/none", "--repair"], "store {}/none: No such file or directory"),
        (["export", "{}/s", "--out", "{}/text"], "--out {}/text: is there already"),
        (["import", "{}/text", "{}/new"], "{}/text: "),
        (["import", "{}/none", "{}/new"], "{}/none: cannot be read"),
        (["import", "{}/gaps.json", "{}/new"], "{}/gaps.json: circumstances: is missing"),
        (["import", "{}/lower.json", "{}/new"], "last_number 0 is below 2, the number of a flow"),
        (["import", "{}/whole.json", "{}/s"], "store {}/s: is there already"),
        (["backup", "{}/s", "{}/text"], "{}/text: is there already"),
        (["backup", "{}/s", "{}/none/copy"], "{}/none/copy: "),
    ],
)
def test_wrong_input_is_one_line(tmp_path: Path, words: list[str], says: str) -> None:
    held = full(tmp_path / "s", flows=2).model_dump(mode="json")
    (tmp_path / "text").write_text("no database, but long enough to be taken for a part of one" * 99)
    (tmp_path / "whole.json").write_text(json.dumps(held))
    (tmp_path / "lower.json").write_text(json.dumps({**held, "last_number": 0}))
    (tmp_path / "gaps.json").write_text(json.dumps({"version": 2}))
    before = sorted(path.name for path in tmp_path.iterdir())
    ended = CliRunner().invoke(app, ["store", *(word.format(tmp_path) for word in words)])
    assert ended.exit_code == 2
    assert ended.output.count("\n") == 1
    assert says.format(tmp_path) in ended.output
    made = {path.name for path in tmp_path.iterdir()} - {*before, "s-wal", "s-shm", "text.lock"}
    assert made == set()


def test_a_transaction_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """A row that cannot be written takes its whole transaction with it, but not the next one."""
    with opened(tmp_path / "flows.sqlite") as store:
        with pytest.raises(StoreError, match="UNIQUE constraint failed"):
            store.write([Insert(stored(1)), Insert(stored(1))])
        assert store.load() == []
        store.write([Insert(stored(2))])
        assert store.load() == [stored(2)]


def test_a_disk_that_fails_is_not_taken_for_a_damaged_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restart may find a disk that works, so the start must end with the status that has it tried again."""
    full(tmp_path / "flows.sqlite", flows=3)

    def fail(_database: sqlite3.Connection) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_READ
        raise error

    monkeypatch.setattr(store_reading, "_values", fail)
    with pytest.raises(EnvironmentFaultError, match="disk I/O error"):
        opened(tmp_path / "flows.sqlite")
