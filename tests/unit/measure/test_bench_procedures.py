"""A procedure is a single file: `toy_procedure` is measured, stored and shown like all others."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import toy_procedure
import typer
from typer.testing import CliRunner

from loko_testbed.cli.bench.procedures import add_command
from loko_testbed.cli.bench.progress import announcement
from loko_testbed.measure.bench import campaign, procedures
from loko_testbed.measure.bench.cases import TableCase
from loko_testbed.measure.bench.part import Design, Procedure
from loko_testbed.measure.bench.procedures import EVERY_PROCEDURE, PROCEDURES
from loko_testbed.measure.bench.store import SampleStore
from loko_testbed.measure.bench.virtual import VirtualDevice

TOY = toy_procedure.PROCEDURE


def test_a_new_procedure_is_measured_and_resumed(tmp_path: Path) -> None:
    todo = campaign.parts((TOY,), samples=3)
    keys = [part.key for part in todo]
    assert announcement(todo, set(), real_time=True).startswith("2 parts to measure; about ")
    for _ in range(2):
        store = SampleStore(tmp_path / "samples", {})
        campaign.run(VirtualDevice(seed=1), todo, store, seed=1, on_part=lambda _: None)
        assert store.complete_among(keys) == set(keys)
        samples = store.samples(keys)
        todo = todo[:1]
    frames_held = {
        (table.entries, size): int(values[0])
        for key, by_size in TOY.among(samples).items()
        for table in key.subject
        if isinstance(table, TableCase)
        for size, values in by_size.items()
    }
    assert frames_held[1, 1516] == toy_procedure.BURST_FRAMES
    assert frames_held[128, 64] < toy_procedure.BURST_FRAMES


def test_a_new_procedure_has_its_command(tmp_path: Path) -> None:
    app = typer.Typer()
    for procedure in (TOY, PROCEDURES[0]):
        add_command(app, procedure)
    arguments = [TOY.name, "--out", str(tmp_path)]
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code == 0
    rows = json.loads(done.stdout)["rows"]
    assert [row["what"] for row in rows[::2]] == [str(key.subject[0]) for key in keys_of(TOY)]
    assert [row["frame_bytes"] for row in rows] == [*toy_procedure.SIZES] * 2
    assert "what, in frames " in CliRunner().invoke(app, arguments).stdout
    refused = CliRunner().invoke(app, [*arguments, "--device", "banana-pi-r1"])
    assert "so only dp-time and throughput make sense" in str(refused.exception)


def keys_of(procedure: Procedure) -> list:
    return [part.key for part in campaign.parts((procedure,), samples=3)]


def test_every_file_of_the_folder_is_a_procedure_with_a_command() -> None:
    files = Path(str(procedures.__file__)).parent.glob("[!_]*.py")
    there = {importlib.import_module(f"{procedures.__name__}.{file.stem}").PROCEDURE for file in files}
    assert there == {procedure for listed in EVERY_PROCEDURE for procedure in (listed, *listed.beside)}


def test_no_two_parts_have_the_same_name() -> None:
    every = [procedure for listed in (*EVERY_PROCEDURE, TOY) for procedure in (listed, *listed.beside)]
    for design in Design:
        names = [str(part.key) for part in campaign.parts(every, samples=3, design=design)]
        assert len(names) == len(set(names)) > len(every)
