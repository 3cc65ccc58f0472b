"""A change that was interrupted is finished, found to be done, or in doubt; one that fails leaves the old files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from greenroom.adapters.files.local import LocalFiles
from greenroom.core.ports.files import FileFault, digest_of
from greenroom.core.state.step import Prepared
from tests.abilities.tools.files.desk import Desk

OLD, NEW, OTHER = b"old\n", b"new\n", b"other\n"
EDITS = [{"search": "old", "replace": "new"}]
NAMES = ("a.txt", "b.txt", "c.txt")
FILES = [{"file": name, "edits": EDITS} for name in NAMES]


def said(name: str, before: bytes | None = OLD, after: bytes = NEW) -> Prepared:
    return Prepared(kind="file", key=name, before="" if before is None else digest_of(before), after=digest_of(after))


async def test_what_will_be_written_is_said_before(desk: Desk) -> None:
    desk.put("a.txt", OLD)
    await desk.works("patch", file="a.txt", edits=EDITS)
    assert desk.said == [said("a.txt")]
    await desk.works("rewrite", file="n.txt", content="new\n")
    assert desk.said == [said("n.txt", before=None)]


@pytest.mark.parametrize(("found", "state"), [(OLD, "finished"), (NEW, "finished"), (OTHER, "uncertain")])
async def test_an_interrupted_patch_is_done_found_or_in_doubt(desk: Desk, found: bytes, state: str) -> None:
    path = desk.put("a.txt", found)
    outcome = await desk.call_again("patch", [said("a.txt")], file="a.txt", edits=EDITS)
    assert outcome.state == state
    assert path.read_bytes() == (OTHER if found == OTHER else NEW)
    assert desk.said == [], "it is not said twice"


@pytest.mark.parametrize(
    ("before", "found", "state"),
    [
        (OLD, OLD, "finished"),
        (OLD, NEW, "finished"),
        (OLD, OTHER, "uncertain"),
        (None, None, "finished"),
        (None, NEW, "finished"),
        (None, OTHER, "uncertain"),
        (OLD, None, "uncertain"),
    ],
)
async def test_an_interrupted_rewrite_is_done_found_or_in_doubt(
    desk: Desk, before: bytes | None, found: bytes | None, state: str
) -> None:
    path = desk.root / "a.txt"
    if found is not None:
        path.write_bytes(found)
    outcome = await desk.call_again("rewrite", [said("a.txt", before)], file="a.txt", content="new\n")
    assert outcome.state == state
    there = path.read_bytes() if path.exists() else None
    assert there == (NEW if state == "finished" else found)


async def test_the_sentence_about_a_doubt_names_what_is_written_and_what_is_not_known(desk: Desk) -> None:
    for name, content in zip(NAMES, (NEW, OTHER, OLD), strict=True):
        desk.put(name, content)
    outcome = await desk.call_again("patch", [said(name) for name in NAMES], files=FILES)
    assert outcome.state == "uncertain"
    assert "'b.txt' is neither as it was before nor as it should be after" in outcome.error
    assert "Written before: 'a.txt'." in outcome.error
    assert (desk.root / "c.txt").read_bytes() == OLD


@pytest.mark.parametrize("written", range(4))
async def test_recovery_finishes_the_rest_of_several_files(desk: Desk, written: int) -> None:
    for number, name in enumerate(NAMES):
        desk.put(name, NEW if number < written else OLD)
    outcome = await desk.call_again("patch", [said(name) for name in NAMES], files=FILES)
    assert outcome.state == "finished"
    assert [(desk.root / name).read_bytes() for name in NAMES] == [NEW] * 3
    assert str((outcome.result or {})["output"]).count("was written before the work was interrupted") == written


async def test_a_recovered_file_is_known_as_after_any_change(desk: Desk) -> None:
    desk.put("a.txt", NEW)
    await desk.call_again("rewrite", [said("a.txt")], file="a.txt", content="new\n")
    await desk.works("rewrite", file="a.txt", content="newer\n")


async def test_a_step_that_would_now_do_something_else_is_in_doubt(desk: Desk) -> None:
    desk.put("a.txt", OLD)
    outcome = await desk.call_again("patch", [said("a.txt", after=OTHER)], file="a.txt", edits=EDITS)
    assert outcome.state == "uncertain"
    assert (desk.root / "a.txt").read_bytes() == OLD


class Faulty(LocalFiles):
    """A workspace in which something happens just before the writing of one file."""

    def __init__(self, root: Path, name: str, before: Callable[[], None]) -> None:
        super().__init__(root)
        self._name = name
        self._before = before

    async def write(self, path: str, content: bytes, *, expected: str | None) -> None:
        """Write, unless something happens."""
        if path == self._name and content == NEW:
            self._before()
        await super().write(path, content, expected=expected)


def full() -> None:
    raise FileFault("disk", "The disk is full.")


@pytest.mark.req("MA-52", "AG-68")
async def test_when_one_of_several_files_cannot_be_written_the_others_are_put_back(desk: Desk) -> None:
    faulty = Desk(desk.root, Faulty(desk.root, "c.txt", full))
    for name in NAMES:
        faulty.put(name, OLD)
    outcome = await faulty.call("patch", files=FILES)
    assert (outcome.state, outcome.error) == ("failed", "The disk is full. Nothing was written.")
    assert [(desk.root / name).read_bytes() for name in NAMES] == [OLD] * 3


async def test_a_file_that_somebody_edits_at_that_moment_is_theirs(desk: Desk) -> None:
    def edited() -> None:
        desk.put("c.txt", OTHER)

    faulty = Desk(desk.root, Faulty(desk.root, "c.txt", edited))
    for name in NAMES:
        faulty.put(name, OLD)
    outcome = await faulty.call("patch", files=FILES)
    assert outcome.state == "failed"
    assert "somebody has changed it meanwhile" in outcome.error
    assert [(desk.root / name).read_bytes() for name in NAMES] == [OLD, OLD, OTHER]


async def test_what_cannot_be_put_back_is_in_doubt(desk: Desk) -> None:
    def trouble() -> None:
        (desk.root / "a.txt").chmod(0o444)
        full()

    faulty = Desk(desk.root, Faulty(desk.root, "c.txt", trouble))
    for name in NAMES:
        faulty.put(name, OLD)
    outcome = await faulty.call("patch", files=FILES)
    assert outcome.state == "uncertain"
    assert "could not be put back: 'a.txt'" in outcome.error


async def test_who_is_cancelled_between_two_files_puts_the_first_back(desk: Desk) -> None:
    def cancelled() -> None:
        raise asyncio.CancelledError

    faulty = Desk(desk.root, Faulty(desk.root, "c.txt", cancelled))
    for name in NAMES:
        faulty.put(name, OLD)
    with pytest.raises(asyncio.CancelledError):
        await faulty.call("patch", files=FILES)
    assert [(desk.root / name).read_bytes() for name in NAMES] == [OLD] * 3


async def test_a_new_file_of_a_failed_call_is_taken_away_again(desk: Desk) -> None:
    def cancelled() -> None:
        desk.put("n.txt", NEW)
        raise asyncio.CancelledError

    faulty = Desk(desk.root, Faulty(desk.root, "n.txt", cancelled))
    with pytest.raises(asyncio.CancelledError):
        await faulty.call("rewrite", file="n.txt", content="new\n")
    assert not (desk.root / "n.txt").exists()


async def test_a_recovery_that_fails_is_in_doubt_when_something_was_written(desk: Desk) -> None:
    faulty = Desk(desk.root, Faulty(desk.root, "c.txt", full))
    for name, content in zip(NAMES, (NEW, OLD, OLD), strict=True):
        faulty.put(name, content)
    outcome = await faulty.call_again("patch", [said(name) for name in NAMES], files=FILES)
    assert outcome.state == "uncertain"
    assert outcome.error == "The disk is full. Written before it was interrupted: 'a.txt'."
    assert [(desk.root / name).read_bytes() for name in NAMES] == [NEW, OLD, OLD]


async def test_a_recovery_that_fails_has_failed_when_nothing_was_written(desk: Desk) -> None:
    faulty = Desk(desk.root, Faulty(desk.root, "c.txt", full))
    for name in NAMES:
        faulty.put(name, OLD)
    outcome = await faulty.call_again("patch", [said(name) for name in NAMES], files=FILES)
    assert (outcome.state, outcome.error) == ("failed", "The disk is full. Nothing was written.")
    assert [(desk.root / name).read_bytes() for name in NAMES] == [OLD] * 3


async def test_a_file_that_somebody_else_made_alike_meanwhile_stays(desk: Desk) -> None:
    def made() -> None:
        desk.put("n.txt", NEW)

    faulty = Desk(desk.root, Faulty(desk.root, "n.txt", made))
    outcome = await faulty.call("rewrite", file="n.txt", content="new\n")
    assert (outcome.state, outcome.error) == ("failed", "'n.txt' is there already. Nothing was written.")
    assert (desk.root / "n.txt").read_bytes() == NEW


async def test_what_cannot_be_looked_at_after_an_interruption_is_in_doubt(desk: Desk, tmp_path: Path) -> None:
    (desk.root / "a.txt").symlink_to(tmp_path)
    outcome = await desk.call_again("rewrite", [said("a.txt")], file="a.txt", content="new\n")
    assert outcome.state == "uncertain"
