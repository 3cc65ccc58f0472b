"""read_code: lines with their numbers, how many there are, and where it stopped."""

from __future__ import annotations

import pytest

from tests.abilities.tools.files.desk import Desk


@pytest.mark.req("MA-49")
async def test_lines_come_with_their_numbers(desk: Desk) -> None:
    desk.put("a.py", "one\n\ttwo\r\n\nfour")
    assert (await desk.works("read_code", file="a.py")).split("\n") == [
        "a.py: lines 1-4 of 4.",
        "     1\tone",
        "     2\t\ttwo",
        "     3\t",
        "     4\tfour",
    ]


@pytest.mark.req("MA-49")
async def test_a_range_of_lines_can_be_read(desk: Desk) -> None:
    desk.put("a.py", "".join(f"line {number}\n" for number in range(1, 100)))
    said = await desk.works("read_code", file="a.py", start_line=10, end_line=11)
    assert said == "a.py: lines 10-11 of 99.\n    10\tline 10\n    11\tline 11"
    assert "lines 98-99 of 99" in await desk.works("read_code", file="a.py", start_line="98", end_line=500)


@pytest.mark.req("MA-49")
async def test_its_description_says_to_read_before_writing_and_by_range(desk: Desk) -> None:
    told = desk.tools["read_code"].card.spec.description
    assert "before you change a file" in told
    assert "by range" in told


async def test_a_long_file_is_read_in_pieces(desk: Desk) -> None:
    desk.put("a.py", "x = 1\n" * 5000)
    said = await desk.works("read_code", file="a.py")
    assert said.startswith("a.py: lines 1-2000 of 5000. Read on with start_line 2001.")
    assert len(said.encode()) <= desk.tools["read_code"].card.shown


async def test_wide_lines_fill_the_room_sooner_and_a_very_long_one_is_cut(desk: Desk) -> None:
    desk.put("wide.py", ("ü" * 500 + "\n") * 200)
    said = await desk.works("read_code", file="wide.py")
    assert "Read on with start_line 29." in said
    assert len(said.encode()) <= desk.tools["read_code"].card.shown
    desk.put("min.js", "a" * 1_000_000)
    said = await desk.works("read_code", file="min.js")
    assert "lines 1-1 of 1. Of lines longer than 2000 characters only the beginning is shown." in said
    assert said.endswith("…")


async def test_an_empty_file_is_said_to_be_empty(desk: Desk) -> None:
    desk.put("a.py", "")
    assert await desk.works("read_code", file="a.py") == "a.py: the file is empty."


@pytest.mark.parametrize(
    ("arguments", "reason", "why"),
    [
        ({"file": "a.py", "start_line": 4}, "arguments", "There is no line 4 in 'a.py': it has 3 lines."),
        ({"file": "a.py", "start_line": 3, "end_line": 2}, "arguments", "start_line 3 comes after end_line 2."),
        ({"file": "a.py", "start_line": 0}, "arguments", "`int` >= 1 - at `$.start_line`"),
        ({"file": "a.py", "start_line": "first"}, "arguments", "Expected `int`, got `str` - at `$.start_line`"),
        ({"file": "a.py", "line": 3}, "arguments", "unknown field `line`"),
        ({}, "arguments", "missing required field `file`"),
        ({"file": "b.py"}, "missing", "There is no 'b.py'."),
        ({"file": "."}, "kind", "is a folder"),
        ({"file": "../a.py"}, "path", "has '..' in it"),
        ({"file": "/etc/passwd"}, "path", "outside the workspace"),
        ({"file": "a\x00.py"}, "path", "control characters"),
    ],
)
async def test_what_cannot_be_read_is_refused_with_the_reason(
    desk: Desk, arguments: dict[str, object], reason: str, why: str
) -> None:
    desk.put("a.py", "1\n2\n3\n")
    found, said = await desk.fails("read_code", **arguments)
    assert found == reason
    assert why in said


async def test_an_absolute_path_inside_the_workspace_is_fine(desk: Desk) -> None:
    path = desk.put("sub/a.py", "1\n")
    assert "     1\t1" in await desk.works("read_code", file=str(path))


async def test_a_call_says_which_paths_it_would_touch_as_named_and_as_they_are(desk: Desk) -> None:
    desk.put("real/a.py", "1\n")
    (desk.root / "link").symlink_to("real")
    targets = desk.tools["read_code"].targets({"file": "link/a.py"})
    assert [(one.kind, one.value, one.writes) for one in targets] == [
        ("path", "link/a.py", False),
        ("path", "real/a.py", False),
    ]
    patch = desk.tools["patch"]
    assert [(one.value, one.writes) for one in patch.targets({"files": [{"file": "x"}, {"file": 3}, 4]})] == [
        ("x", True)
    ]
    assert [(one.kind, one.value) for one in patch.targets({"nonsense": 1})] == [("tool", "patch")]
    assert [one.value for one in patch.targets({"file": "/etc/passwd"})] == ["/etc/passwd"]
    assert [one.value for one in patch.targets({"file": f"{desk.root}/./real//a.py"})] == ["real/a.py"]
    assert [one.value for one in desk.tools["search_files"].targets({})] == ["."]


async def test_every_card_says_when_when_not_and_gives_an_example(desk: Desk) -> None:
    for tool in desk.tools.values():
        assert tool.description == tool.card.spec.description
        assert "Example: {" in tool.description
        assert "Not for" in tool.description
        assert (tool.card.effect == "keyed") == (tool.card.group == "edit")


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ({"start_line": 3, "end_line": 2}, "start_line 3 comes after end_line 2. 'a' has 4 lines."),
        ({"start_line": 9, "end_line": 2}, "start_line 9 comes after end_line 2. 'a' has 4 lines."),
        ({"start_line": 9, "end_line": 12}, "There is no line 9 in 'a': it has 4 lines."),
        ({"start_line": 9}, "There is no line 9 in 'a': it has 4 lines."),
    ],
)
async def test_lines_that_there_are_not_are_said_as_they_were_asked_for(
    desk: Desk, lines: dict[str, int], why: str
) -> None:
    desk.put("a", "1\n2\n3\n4\n")
    outcome = await desk.call("read_code", file="a", **lines)
    assert (outcome.state, outcome.error) == ("failed", why)
