"""Writing files: rewrite, what goes wrong on the way, and what a crash leaves."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from greenroom.abilities.tools.files import write
from greenroom.adapters.files.local_files import LocalFiles
from greenroom.core.base.records import evolve
from greenroom.core.ports.files import FileFault, compute_digest
from greenroom.core.state.step import PreparedEffect
from tests.abilities.tools.files.desk import Desk

EDIT = [{"search": "two", "replace": "2"}]


@pytest.mark.req("MA-53", "AG-68")
async def test_a_new_file_is_written_with_its_folders(desk: Desk) -> None:
    said = await desk.works("rewrite", file="deep/down/a.txt", content="one\ntwo\n")
    assert (desk.root / "deep/down/a.txt").read_bytes() == b"one\ntwo\n"
    assert said == "deep/down/a.txt: new, 2 lines, 8 bytes written."


@pytest.mark.req("MA-53", "AG-68")
async def test_a_whole_file_is_replaced_and_a_diff_says_so(desk: Desk) -> None:
    path = desk.put("a.txt", "one\ntwo\nthree\n")
    path.chmod(0o750)
    await desk.works("read_code", file="a.txt")
    said = await desk.works("rewrite", file="a.txt", content="one\n2\nthree\nfour\n")
    assert path.read_bytes() == b"one\n2\nthree\nfour\n"
    assert path.stat().st_mode & 0o777 == 0o750
    assert said.splitlines() == [
        "a.txt: rewritten, +2 −1 lines, 17 bytes written.",
        "@@ -1,3 +1,4 @@",
        " one",
        "-two",
        "+2",
        " three",
        "+four",
    ]


@pytest.mark.req("MA-53", "AG-71")
async def test_both_descriptions_prefer_patch(desk: Desk) -> None:
    assert "Prefer it to rewrite" in desk.tools["patch"].description
    assert "Not for small changes: use patch" in desk.tools["rewrite"].description
    assert "a new one, or an old one of which most changes" in desk.tools["rewrite"].description


async def test_the_same_content_is_not_written_again(desk: Desk) -> None:
    path = desk.put("a.txt", "one\n")
    await desk.works("read_code", file="a.txt")
    before = path.stat().st_ino
    assert "has this content already" in await desk.works("rewrite", file="a.txt", content="one\n")
    assert path.stat().st_ino == before


async def test_a_file_that_was_not_read_is_not_written_over(desk: Desk) -> None:
    path = desk.put("a.txt", "one\n")
    reason, why = await desk.fails("rewrite", file="a.txt", content="x")
    assert reason == "changed"
    assert why.startswith("'a.txt' exists and you have not read it. Read all of it first")
    assert path.read_text() == "one\n"


async def test_a_file_that_was_read_in_part_is_not_written_over(desk: Desk) -> None:
    desk.put("a.txt", "1\n2\n3\n4\n5\n")
    await desk.works("read_code", file="a.txt", end_line=2)
    await desk.works("read_code", file="a.txt", start_line=4)
    assert "only a part of it" in (await desk.fails("rewrite", file="a.txt", content="x"))[1]
    await desk.works("read_code", file="a.txt", start_line=2, end_line=4)
    await desk.works("rewrite", file="a.txt", content="x\n")


async def test_a_line_that_was_shown_in_part_was_not_read(desk: Desk) -> None:
    desk.put("a.txt", "x" * 5000)
    await desk.works("read_code", file="a.txt")
    assert "only a part of it" in (await desk.fails("rewrite", file="a.txt", content="x"))[1]


async def test_a_file_that_was_not_read_may_be_patched(desk: Desk) -> None:
    path = desk.put("a.txt", "one\ntwo\n")
    await desk.works("patch", file="a.txt", edits=EDIT)
    assert path.read_text() == "one\n2\n"


@pytest.mark.parametrize("call", [("patch", {"edits": EDIT}), ("rewrite", {"content": "x"})])
async def test_a_file_that_somebody_changed_since_it_was_read_is_not_touched(
    desk: Desk, call: tuple[str, dict[str, object]]
) -> None:
    path = desk.put("a.txt", "one\ntwo\n")
    await desk.works("read_code", file="a.txt")
    path.write_text("one\ntwo\nthree\n")
    reason, why = await desk.fails(call[0], file="a.txt", **call[1])
    assert reason == "changed"
    assert "has changed since you read it: it was edited elsewhere. Read it again first." in why
    assert path.read_text() == "one\ntwo\nthree\n"
    await desk.works("read_code", file="a.txt")
    await desk.works(call[0], file="a.txt", **call[1])


async def test_one_s_own_changes_are_known(desk: Desk) -> None:
    path = desk.put("a.txt", "one\ntwo\n")
    await desk.works("read_code", file="a.txt")
    await desk.works("patch", file="a.txt", edits=EDIT)
    await desk.works("patch", file="a.txt", edits=[{"search": "2", "replace": "two"}])
    await desk.works("rewrite", file="a.txt", content="x\n")
    await desk.works("rewrite", file="a.txt", content="y\n")
    assert path.read_text() == "y\n"


async def test_a_patch_of_an_unread_file_does_not_make_it_known(desk: Desk) -> None:
    desk.put("a.txt", "one\ntwo\n")
    await desk.works("patch", file="a.txt", edits=EDIT)
    assert "only a part of it" in (await desk.fails("rewrite", file="a.txt", content="x"))[1]


async def test_an_empty_file_is_known_when_it_was_read(desk: Desk) -> None:
    desk.put("a.txt", "")
    await desk.works("read_code", file="a.txt")
    await desk.works("rewrite", file="a.txt", content="x\n")


async def test_what_left_the_window_or_failed_or_is_another_tool_s_is_not_known(desk: Desk) -> None:
    desk.put("a.txt", "one\n")
    await desk.works("read_code", file="a.txt")
    step = desk.history[0]
    desk.history = [
        evolve(step, state="failed"),
        evolve(step, work=evolve(step.work, executor="stranger")),
        evolve(step, result={"output": "x", "files": "none"}),
    ]
    assert "you have not read it" in (await desk.fails("rewrite", file="a.txt", content="x"))[1]


async def test_a_file_is_known_under_all_its_names(desk: Desk) -> None:
    path = desk.put("real/a.txt", "one\n")
    (desk.root / "link").symlink_to("real")
    await desk.works("read_code", file="link/a.txt")
    await desk.works("rewrite", file=str(path), content="two\n")
    assert path.read_text() == "two\n"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"file": "a.txt"}, "missing required field `content`"),
        ({"file": "a.txt", "content": 3}, "Expected `str`, got `int` - at `$.content`"),
        ({"file": "a.txt", "content": "x", "text": "y"}, "unknown field `text`"),
        ({"file": "a.txt", "content": "\x00"}, "NUL character"),
        ({"file": "a.txt", "content": "\ud800"}, "cannot be written as utf-8"),
        ({"file": ".git/hooks/pre-commit", "content": "x"}, "belongs to git or Greenroom"),
        ({"file": "sub/.greenroom/agents/a.md", "content": "x"}, "belongs to git or Greenroom"),
        ({"file": "folder", "content": "x"}, "is a folder"),
    ],
)
async def test_what_cannot_be_written_is_refused_with_the_reason(
    desk: Desk, arguments: dict[str, object], why: str
) -> None:
    (desk.root / "folder").mkdir()
    outcome = await desk.call("rewrite", **arguments)
    assert outcome.state == "failed"
    assert why in outcome.error
    assert sorted(one.name for one in desk.root.rglob("*")) in (["folder"], ["folder", "sub"])


@pytest.mark.parametrize("file", ["aaa/", "new/folder/ "])
async def test_what_names_a_folder_is_not_written_as_a_file(desk: Desk, file: str) -> None:
    outcome = await desk.call("rewrite", file=file, content="x")
    assert outcome.state == "failed"
    assert f"{file!r} names a folder, not a file." in outcome.error
    assert list(desk.root.iterdir()) == []


MEGABYTES_50 = 50 * 1024 * 1024
EDITS = [{"search": "old", "replace": "new"}]
CALLS: dict[str, dict[str, object]] = {"read_code": {}, "patch": {"edits": EDITS}, "rewrite": {"content": "x"}}


@pytest.mark.timeout(60)
# Reaches no line that other tests do not, and to be measured takes it twice as long.
@pytest.mark.no_cover
async def test_a_file_of_50_megabytes_is_edited_right(desk: Desk) -> None:
    line = b"0123456789abcdef" * 4 + b"\r\n"
    half = line * (MEGABYTES_50 // len(line) // 2)
    path = desk.put("large.txt", half + b"old\r\n" + half)
    said = await desk.works("patch", file="large.txt", edits=EDITS)
    assert path.read_bytes() == half + b"new\r\n" + half
    assert len(said) < 2000
    assert "Read on with" in await desk.works("read_code", file="large.txt", start_line=400_000)


async def test_a_file_that_is_too_large_is_refused(desk: Desk) -> None:
    path = desk.root / "huge.txt"
    with path.open("wb") as file:
        file.truncate(write.MAX_FILE_BYTES + 1)
    for tool, more in CALLS.items():
        reason, why = await desk.fails(tool, file="huge.txt", **more)
        assert reason == "too_large"
        assert "67,108,865 bytes; at most 67,108,864 are read" in why
    assert path.stat().st_size == write.MAX_FILE_BYTES + 1


async def test_a_content_that_is_too_large_is_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "MAX_FILE_BYTES", 10)
    assert (await desk.fails("rewrite", file="a.txt", content="x" * 11))[0] == "too_large"


async def test_a_link_is_written_through_and_stays_a_link(desk: Desk) -> None:
    path = desk.put("real.txt", "old\n")
    (desk.root / "link.txt").symlink_to("real.txt")
    await desk.works("patch", file="link.txt", edits=EDITS)
    assert path.read_text() == "new\n"
    assert (desk.root / "link.txt").is_symlink()
    assert desk.said[0].key == "real.txt"


async def test_a_link_out_of_the_workspace_is_refused(desk: Desk, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("old\n")
    (desk.root / "link.txt").symlink_to(outside)
    (desk.root / "up").symlink_to("..")
    for name in ("link.txt", "up/outside.txt"):
        reason, why = await desk.fails("patch", file=name, edits=EDITS)
        assert reason == "outside"
        assert f"{name!r} leads out of the workspace" in why
        assert (await desk.fails("read_code", file=name))[0] == "outside"
    assert outside.read_text() == "old\n"


@pytest.mark.timeout(20)
async def test_pipes_sockets_and_devices_are_refused_and_never_waited_for(desk: Desk) -> None:
    os.mkfifo(desk.root / "pipe")
    (desk.root / "linked").symlink_to("pipe")
    held = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(desk.root)  # a socket's whole path may be too long
    held.bind("socket")
    os.chdir(here)
    for name in ("pipe", "linked", "socket"):
        for tool, more in CALLS.items():
            reason, why = await desk.fails(tool, file=name, **more)
            assert (reason, "a pipe, a socket or a device" in why) == ("kind", True)
    assert "0 matches" in await desk.works("search_files", pattern="x")
    held.close()


async def test_of_agents_that_edit_one_file_at_once_none_loses_the_other_s_work(desk: Desk) -> None:
    path = desk.put("a.txt", "".join(f"<{number}>\n" for number in range(20)))
    desks = [Desk(desk.root) for _ in range(20)]

    async def edit(number: int) -> bool:
        edits = [{"search": f"<{number}>", "replace": f"[{number}]"}]
        outcome = await desks[number].call("patch", file="a.txt", edits=edits)
        assert outcome.state == "finished" or "it was changed meanwhile" in outcome.error
        return outcome.state == "finished"

    left = set(range(20))
    for _ in range(20):
        done = await asyncio.gather(*(edit(number) for number in sorted(left)))
        left -= {number for number, ok in zip(sorted(left), done, strict=True) if ok}
        if not left:
            break
    assert path.read_text() == "".join(f"[{number}]\n" for number in range(20))


OLD, NEW, OTHER = b"old\n", b"new\n", b"other\n"
NAMES = ("a.txt", "b.txt", "c.txt")
FILES = [{"file": name, "edits": EDITS} for name in NAMES]


def said(name: str, before: bytes | None = OLD, after: bytes = NEW) -> PreparedEffect:
    return PreparedEffect(
        kind="file", key=name, before="" if before is None else compute_digest(before), after=compute_digest(after)
    )


async def test_what_will_be_written_is_said_before(desk: Desk) -> None:
    desk.put("a.txt", OLD)
    await desk.works("patch", file="a.txt", edits=EDITS)
    assert desk.said == [said("a.txt")]
    await desk.works("rewrite", file="n.txt", content="new\n")
    assert desk.said == [said("n.txt", before=None)]


@pytest.mark.parametrize(
    ("tool", "before", "found", "state"),
    [
        *(
            ("patch", OLD, found, state)
            for found, state in ((OLD, "finished"), (NEW, "finished"), (OTHER, "uncertain"))
        ),
        ("rewrite", OLD, OLD, "finished"),
        ("rewrite", OLD, NEW, "finished"),
        ("rewrite", OLD, OTHER, "uncertain"),
        ("rewrite", None, None, "finished"),
        ("rewrite", None, NEW, "finished"),
        ("rewrite", None, OTHER, "uncertain"),
        ("rewrite", OLD, None, "uncertain"),
    ],
)
async def test_an_interrupted_change_is_done_found_or_in_doubt(
    desk: Desk, tool: str, before: bytes | None, found: bytes | None, state: str
) -> None:
    path = desk.root / "a.txt"
    if found is not None:
        path.write_bytes(found)
    more: dict[str, object] = {"edits": EDITS} if tool == "patch" else {"content": "new\n"}
    outcome = await desk.call_again(tool, [said("a.txt", before)], file="a.txt", **more)
    assert outcome.state == state
    there = path.read_bytes() if path.exists() else None
    assert there == (NEW if state == "finished" else found)
    assert desk.said == [], "it is not said twice"


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
        if path == self._name and content == NEW:
            self._before()
        await super().write(path, content, expected=expected)


def faulty_desk(desk: Desk, name: str, before: Callable[[], None], *contents: bytes) -> Desk:
    """A desk with three files, at which something happens just before this one is written."""
    faulty = Desk(desk.root, Faulty(desk.root, name, before))
    for file, content in zip(NAMES, contents or (OLD, OLD, OLD), strict=True):
        faulty.put(file, content)
    return faulty


def full() -> None:
    raise FileFault("disk", "The disk is full.")


@pytest.mark.req("MA-52", "AG-68")
async def test_when_one_of_several_files_cannot_be_written_the_others_are_put_back(desk: Desk) -> None:
    faulty = faulty_desk(desk, "c.txt", full)
    outcome = await faulty.call("patch", files=FILES)
    assert (outcome.state, outcome.error) == ("failed", "The disk is full. Nothing was written.")
    assert [(desk.root / name).read_bytes() for name in NAMES] == [OLD] * 3


async def test_a_file_that_somebody_edits_at_that_moment_is_theirs(desk: Desk) -> None:
    def edited() -> None:
        desk.put("c.txt", OTHER)

    faulty = faulty_desk(desk, "c.txt", edited)
    outcome = await faulty.call("patch", files=FILES)
    assert outcome.state == "failed"
    assert "it was changed meanwhile" in outcome.error
    assert [(desk.root / name).read_bytes() for name in NAMES] == [OLD, OLD, OTHER]


async def test_what_cannot_be_put_back_is_in_doubt(desk: Desk) -> None:
    def trouble() -> None:
        (desk.root / "a.txt").chmod(0o444)
        full()

    faulty = faulty_desk(desk, "c.txt", trouble)
    outcome = await faulty.call("patch", files=FILES)
    assert outcome.state == "uncertain"
    assert "could not be put back: 'a.txt'" in outcome.error


async def test_who_is_cancelled_between_two_files_puts_the_first_back(desk: Desk) -> None:
    def cancelled() -> None:
        raise asyncio.CancelledError

    faulty = faulty_desk(desk, "c.txt", cancelled)
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
    faulty = faulty_desk(desk, "c.txt", full, NEW, OLD, OLD)
    outcome = await faulty.call_again("patch", [said(name) for name in NAMES], files=FILES)
    assert outcome.state == "uncertain"
    assert outcome.error == "The disk is full. Written before it was interrupted: 'a.txt'."
    assert [(desk.root / name).read_bytes() for name in NAMES] == [NEW, OLD, OLD]


async def test_a_recovery_that_fails_has_failed_when_nothing_was_written(desk: Desk) -> None:
    faulty = faulty_desk(desk, "c.txt", full)
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
