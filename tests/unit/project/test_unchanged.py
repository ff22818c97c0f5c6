"""Checks that `make test` does not repeat: `setup/unchanged.sh`, and whether their inputs are complete."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.builds import BUILD

ROOT = Path(__file__).resolve().parents[3]
RUST = ROOT / "switch-emulator"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", RUST / "target" if BUILD == ROOT else BUILD / "target"))
ONLY_SHOWN = {RUST / "fuzz/tests/replay.rs": ROOT}
"""A folder that a source names but does not read: it shows its paths relative to that."""


class Checkout:
    """A folder with the script, a check, and what the check depends on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "setup").mkdir()
        for name in ("unchanged.sh", "step.sh", "environment.sh", "trouble.sh"):
            shutil.copy(ROOT / "setup" / name, folder / "setup")
        (folder / "requirements.lock").touch()
        (folder / "inputs").mkdir()
        self.input = folder / "inputs/one"
        self.input.write_text("1")

    def check(
        self, command: str, *, step: bool = True, paths: tuple[str, ...] = ("inputs",), **settings: str
    ) -> str:
        """Return what the check prints, with these variables; `step`: as one of the steps of `make test`."""
        place = {name: value for name, value in os.environ.items() if name != "LOKO_BUILD"} | settings
        place["SKIP_UNCHANGED"] = "1" if step else ""
        words = [str(self.folder / "setup/unchanged.sh"), "rust", *paths, "--", "sh", "-ec", command]
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=place)
        return done.stdout if done.returncode == 0 else f"failed: {done.stdout}"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


UNCHANGED = "rust: unchanged since it passed; to repeat it: make rust\n"


def test_a_step_is_repeated_only_if_its_inputs_or_its_command_changed(checkout: Checkout) -> None:
    assert checkout.check("echo runs") == "runs\n"
    assert checkout.check("echo runs") == UNCHANGED
    (checkout.folder / "elsewhere").touch()
    assert checkout.check("echo runs") == UNCHANGED
    checkout.input.write_text("2")
    assert checkout.check("echo runs") == "runs\n"
    (checkout.folder / "inputs/two").touch()
    assert checkout.check("echo runs") == "runs\n"
    assert checkout.check("echo runs again") == "runs again\n"


def test_a_pass_with_other_settings_is_none(checkout: Checkout) -> None:
    assert checkout.check("echo runs", step=False, PROPTEST_CASES="1") == "runs\n"
    assert checkout.check("echo runs") == "runs\n"
    assert checkout.check("echo runs") == UNCHANGED
    assert checkout.check("echo runs", RUSTFLAGS="--cfg other") == "runs\n"


def test_what_is_called_by_its_name_always_runs(checkout: Checkout) -> None:
    assert checkout.check("echo runs", step=False) == "runs\n"
    assert checkout.check("echo runs", step=False) == "runs\n"
    assert checkout.check("echo runs") == UNCHANGED


def test_what_failed_is_repeated(checkout: Checkout) -> None:
    assert checkout.check("echo runs; test ! -e setup/fails") == "runs\n"
    (checkout.folder / "setup/fails").touch()
    assert checkout.check("echo runs; test ! -e setup/fails", step=False) == "failed: runs\n"
    (checkout.folder / "setup/fails").unlink()
    assert checkout.check("echo runs; test ! -e setup/fails") == "runs\n"


def test_inputs_edited_while_it_runs_are_checked_again(checkout: Checkout) -> None:
    assert checkout.check("echo 2 >inputs/one") == ""
    checkout.input.write_text("1")
    assert checkout.check("echo 2 >inputs/one") == ""


def test_an_input_that_is_missing_is_an_error(checkout: Checkout) -> None:
    assert checkout.check("echo runs", paths=("inputs", "nowhere")).startswith("failed: ")


def inputs(target: str) -> list[str]:
    """Return the files and folders, or patterns, that decide by the Makefile whether a target is repeated."""
    said = subprocess.run(
        ["make", "--no-print-directory", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    [command] = [line for line in said.splitlines() if line.startswith(f"setup/unchanged.sh {target} ")]
    words = shlex.split(command)
    return words[2 : words.index("--")]


def named_in_sources() -> Iterator[tuple[Path, Path]]:
    """Yield each source of a crate with each path that it names relative to itself or to its crate."""
    for crate in sorted(path.parent for path in RUST.glob("*/Cargo.toml")):
        for source in sorted(crate.rglob("*.rs")):
            if "target" in source.relative_to(crate).parts:
                continue
            text = source.read_text(encoding="utf-8")
            for path in re.findall(r'include_(?:str|bytes)!\(\s*"([^"]+)"', text):
                yield source, (source.parent / path).resolve()
            for path in re.findall(r'join\(\s*"(\.\./[^"]*)"|"/(\.\./[^"]*)"', text):
                yield source, (crate / "".join(path)).resolve()


def compiled() -> Iterator[tuple[Path, Path]]:
    """Yield each list of inputs that the compiler wrote, with each file of this project in it."""
    for listed in sorted(TARGET.glob("release/deps/*.d")):
        for word in listed.read_text(encoding="utf-8").replace("\\ ", "\0").split():
            path = (RUST / word.rstrip(":").replace("\0", " ")).resolve()
            if path.is_file() and path.is_relative_to(ROOT) and not path.is_relative_to(TARGET.resolve()):
                yield listed, path


@pytest.mark.parametrize("target", ["rust", "lint-rust"])
def test_all_that_the_crates_read_decides_whether_their_tests_are_repeated(target: str) -> None:
    known = [path for word in inputs(target) for path in ROOT.glob(word)]
    named = {(by, path) for by, path in named_in_sources() if ONLY_SHOWN.get(by) != path}
    assert ROOT / "docs/quirks.md" in {path for _, path in named}, "what is outside of the workspace is seen"
    missing = [
        f"{by}: {path}"
        for by, path in sorted({*named, *compiled()})
        if not any(path.is_relative_to(place) for place in known)
    ]
    assert missing == []


def test_all_that_the_pages_show_or_lead_to_decides_whether_they_are_checked_again() -> None:
    known = {ROOT / word for word in inputs("lint-docs")}
    pages = [path for place in known for path in ([place] if place.is_file() else place.glob("**/*.md"))]
    texts = {page: page.read_text(encoding="utf-8") for page in pages if page.suffix == ".md"}
    linked = {
        (page.parent / path).resolve()
        for page, text in texts.items()
        for path in re.findall(r"\]\(([^)#\s:]+)(?:#[^)\s]*)?\)", text)
    }
    assert ROOT / "LICENSE" in linked
    shown = {
        path
        for text in texts.values()
        for name in re.findall(r"^\.\. automodule:: (\S+)", text, re.M)
        for path in ROOT.glob(f"*/*/{name}/__init__.py")
    }
    assert shown
    assert [path for path in (linked | shown) if not any(path.is_relative_to(each) for each in known)] == []


def test_files_of_the_fuzz_targets_count_and_build_results_do_not(checkout: Checkout) -> None:
    """Set-up's own fingerprint of the emulator leaves the fuzz targets out."""
    files = [checkout.folder / path for path in ("docs/quirks.md", "switch-emulator/Cargo.toml")]
    kept = checkout.folder / "switch-emulator/fuzz/regressions/openflow/kept"
    built = [checkout.folder / f"switch-emulator/{place}target/built" for place in ("", "fuzz/")]
    for path in (*files, kept, *built):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    paths = tuple(str(path) for word in inputs("rust") for path in sorted(checkout.folder.glob(word)))
    assert checkout.check("echo runs", paths=paths) == "runs\n"
    kept.write_text("changed")
    assert checkout.check("echo runs", paths=paths) == "runs\n"
    for path in built:
        path.write_text("changed")
    assert checkout.check("echo runs", paths=paths) == UNCHANGED
