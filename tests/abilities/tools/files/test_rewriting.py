"""rewrite: a whole file; and what an agent must have seen before it may write over something."""

from __future__ import annotations

import pytest

from greenroom.core.base.records import evolve
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
    assert "has changed since you read it: somebody else has edited it. Read it again first." in why
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


async def test_one_line_is_one_line(desk: Desk) -> None:
    assert "a: new, 1 line, 1 byte written." in await desk.works("rewrite", file="a", content="x")
    assert "b: new, 2 lines, 1,004 bytes written." in await desk.works("rewrite", file="b", content=f"{'x' * 1002}\n\n")
