"""read_code and patch by themselves, and all file tools in a house."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.abilities.tools.files.tools import build_file_tools
from greenroom.adapters.files.local_files import LocalFiles
from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.runtime import Runtime
from greenroom.app.text_reader import TextReader
from greenroom.core.base.ids import TeamId
from greenroom.core.ports.executor import Capabilities
from greenroom.core.rules.intents import AddTask, QueueSteps
from greenroom.core.state.spec import AgentSpec, TurnPolicy
from greenroom.core.state.step import Step, Work
from tests.abilities.skills.talks import ANN, T1, Played, Team, calls, in_order, says, team
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
        (
            {"file": "a.py", "start_line": 9, "end_line": 12},
            "arguments",
            "There is no line 9 in 'a.py': it has 3 lines.",
        ),
        ({"file": "a.py", "start_line": 3, "end_line": 2}, "arguments", "comes after end_line 2. 'a.py' has 3 lines."),
        ({"file": "a.py", "start_line": 9, "end_line": 2}, "arguments", "start_line 9 comes after end_line 2."),
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


NAMES = ("read_code", "list_files", "search_files", "patch", "rewrite")
TEXT = AgentSpec(
    name="Ann", tools=NAMES, turn=TurnPolicy(protocols=("tool_call", "patch", "rewrite"), auto_complete=True)
)
NATIVE = AgentSpec(name="Ann", tools=NAMES)
DONE = says("Done.\n!!!COMPLETE!!!")
WRITTEN = "def f(a, b):\n    return a<b && a\n"


def heard(model: Played, turn: int) -> str:
    """What the model read in that turn."""
    return "\n".join(one.content for one in model.asked[turn].messages)


def contents(root: Path) -> dict[str, str]:
    return {one.name: one.read_text() for one in root.iterdir()}


async def edits(here: Team) -> list[Step]:
    return [step for step in await here.steps() if step.work.executor in ("patch", "rewrite")]


@pytest.mark.req("AG-63", "AG-66", "MA-50", "MA-51")
async def test_patches_in_text_are_made_and_answered_with_a_diff(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(WRITTEN)
    single = (
        '<PATCH file="a.py">\n<DIFF>\n<SEARCH>\n    return a<b && a\n</SEARCH>\n'
        "<REPLACE>\n    return a <= b\n</REPLACE>\n</DIFF>\n</PATCH>"
    )
    region = (
        '<PATCH file="a.py">\n<DIFF>\n<RANGE>1-2</RANGE>\n<SEARCH_START>def f(</SEARCH_START>\n'
        "<SEARCH_END>a <= b</SEARCH_END>\n<REPLACE>f = le</REPLACE>\n</DIFF>\n</PATCH>"
    )
    model = Played(in_order(says(single), says(region), DONE))
    async with team(model, TEXT, reader=TextReader(), tools=build_file_tools(LocalFiles(tmp_path))) as here:
        await here.ask()
        assert [step.state for step in await edits(here)] == ["finished", "finished"]
    assert path.read_text() == "f = le\n"
    assert "+    return a <= b" in heard(model, 1)
    assert "a.py: 1 change, +1 −2 lines, 7 bytes written." in heard(model, 2)


@pytest.mark.req("AG-68", "MA-53")
async def test_a_rewrite_in_text_makes_a_file(tmp_path: Path) -> None:
    model = Played(in_order(says('<REWRITE file="new/a.py">\nprint(1)\n</REWRITE>'), DONE))
    async with team(model, TEXT, reader=TextReader(), tools=build_file_tools(LocalFiles(tmp_path))) as here:
        await here.ask()
    assert (tmp_path / "new/a.py").read_text() == "print(1)\n"
    assert "new/a.py: new, 1 line, 9 bytes written." in heard(model, 1)


@pytest.mark.req("AG-69")
async def test_a_reply_with_neither_block_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(WRITTEN)
    model = Played(in_order(says("I would patch a.py: SEARCH return, REPLACE yield."), DONE))
    async with team(model, TEXT, reader=TextReader(), tools=build_file_tools(LocalFiles(tmp_path))) as here:
        await here.ask()
        assert await edits(here) == []
    assert contents(tmp_path) == {"a.py": WRITTEN}


async def test_a_failed_call_tells_the_model_why(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(WRITTEN)
    wrong = [{"search": "    return a<b && b", "replace": "x"}]
    model = Played(in_order(calls("patch", file="a.py", edits=wrong), says("I see.")))
    async with team(model, NATIVE, tools=build_file_tools(LocalFiles(tmp_path))) as here:
        await here.ask()
    told = model.asked[1].messages[-1].content
    assert "not found: SEARCH does not occur" in told
    assert "line 2 differs: the file has 'return a<b && a', not 'return a<b && b'" in told


async def one_step(home: Path, root: Path, work: Work) -> Step:
    """A process that does one step of the same thread and ends."""
    log = await SqliteLog.open(home)
    runtime = Runtime(
        log,
        capability_factories={"": lambda _: Capabilities(build_file_tools(LocalFiles(root)))},
    )
    teams = await log.streams()
    if teams:
        name = TeamId(teams[0].stream)
    else:
        name = await runtime.create("t", [(ANN, AgentSpec(name="ann", tools=NAMES, manager=True))])
        await runtime.ask(name, AddTask(name="t", intention="t", manager=ANN, driver="manager"))
    await runtime.start(name)
    await runtime.ask(name, QueueSteps(agent_id=ANN, works=(work,), task_id=T1))
    await runtime.wait(name, T1)
    steps = [one async for one in runtime.archive(name, "step") if isinstance(one, Step)]
    await runtime.close()
    return steps[-1]


async def test_what_was_read_is_known_after_a_restart(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text(WRITTEN)
    rewrite = Work(type="tool", executor="rewrite", instruction_content={"file": "a.py", "content": "x = 1\n"})
    read = Work(type="tool", executor="read_code", instruction_content={"file": "a.py"})
    assert (await one_step(tmp_path / "home", root, rewrite)).state == "failed"
    assert (await one_step(tmp_path / "home", root, read)).state == "finished"
    assert (await one_step(tmp_path / "home", root, rewrite)).state == "finished"
    (root / "a.py").write_text("somebody else's\n")
    changed = await one_step(tmp_path / "home", root, rewrite)
    assert changed.state == "failed"
    assert "has changed since you read it" in changed.error


CODE = "def one():\n    return 1\n\n\ndef two():\n    return 2\n\n\ndef three():\n    return 3\n"


def one(search: str, replace: str, **more: object) -> dict[str, object]:
    return {"search": search, "replace": replace, **more}


def region(start: str, end: str, replace: str, **more: object) -> dict[str, object]:
    return {"search_start": start, "search_end": end, "replace": replace, **more}


@pytest.mark.req("MA-50", "AG-63")
async def test_what_occurs_once_is_replaced_and_a_diff_says_so(desk: Desk) -> None:
    path = desk.put("a.py", CODE)
    said = await desk.patch("a.py", one("    return 2\n", "    return 22\n"))
    assert path.read_text() == CODE.replace("return 2\n", "return 22\n")
    assert said.splitlines()[0] == f"a.py: 1 change, +1 −1 lines, {len(CODE) + 1} bytes written."
    assert said.splitlines()[1] == "@@ -3,7 +3,7 @@"
    assert "-    return 2" in said.splitlines()
    assert "+    return 22" in said.splitlines()


@pytest.mark.req("MA-50", "MA-52", "AG-64", "AG-65")
@pytest.mark.parametrize(
    ("content", "search", "reason", "why"),
    [
        (CODE, "def four():", "not_found", "a.py: not found: SEARCH does not occur."),
        (CODE, "    return ", "multiple_matches", "multiple matches: SEARCH occurs 3 times, at lines 2, 6, 10."),
        ("aaa\n", "aa", "multiple_matches", "occurs 2 times"),
        ("a" * 5000, "a", "multiple_matches", "1000 times or more"),
    ],
    ids=["nowhere", "several times", "overlapping", "countless times"],
)
async def test_what_does_not_occur_exactly_once_is_refused_with_the_lines(
    desk: Desk, content: str, search: str, reason: str, why: str
) -> None:
    path = desk.put("a.py", content)
    found, said = await desk.misfits("a.py", one(search, "x"))
    assert found == reason
    assert why in said
    assert path.read_text() == content


@pytest.mark.req("MA-51", "AG-66")
@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        (CODE, one("    return ", "    yield ", range=[5, 6]), CODE.replace("return 2", "yield 2")),
        ("begin\na\nend\nbegin\nb\nend\n", region("begin", "end", "x", range=[4, 6]), "begin\na\nend\nx\n"),
        ("a\nb\nc\n", region("b", "b", "x"), "a\nx\nc\n"),
        ("one\ntwo\nthree\n", one("two\n", ""), "one\nthree\n"),
    ],
    ids=["within a range", "a region within a range", "marks that are the same", "nothing in its place"],
)
async def test_a_change_is_made_where_it_belongs(desk: Desk, before: str, edit: dict[str, object], after: str) -> None:
    path = desk.put("a.py", before)
    await desk.patch("a.py", edit)
    assert path.read_text() == after


@pytest.mark.req("MA-51", "AG-66")
async def test_a_region_is_replaced_with_both_its_marks(desk: Desk) -> None:
    path = desk.put("a.py", CODE)
    said = await desk.patch("a.py", region("def one():", "return 2\n", "pass\n"))
    assert path.read_text() == "pass\n\n\ndef three():\n    return 3\n"
    assert "+1 −6 lines" in said


@pytest.mark.req("MA-51", "MA-52", "AG-67")
@pytest.mark.parametrize(
    ("edit", "reason", "why"),
    [
        (region("def four", "return 3", "x"), "start_missing", "start missing: SEARCH_START does not occur"),
        (region("def one", "return 4", "x"), "end_missing", "end missing: SEARCH_END does not occur"),
        (region("def two", "return 1", "x"), "end_before_start", "SEARCH_END is at line 2, SEARCH_START at line 5"),
        (region("def ", "return 3", "x"), "marks_not_unique", "SEARCH_START occurs 3 times, at lines 1, 5, 9"),
        (region("def one", "return ", "x"), "marks_not_unique", "SEARCH_END occurs 3 times, at lines 2, 6, 10"),
        (region("def one", "return 1", "x", range=[5, 50]), "range_outside", "RANGE 5-50 is outside the file"),
        (one("def one", "x", range=[11, 11]), "range_outside", "which has 10 lines"),
        (one("def one", "x", range=[5, 10]), "not_found", "does not occur in lines 5-10"),
        (one("def one", "def one"), "no_change", "it changes nothing"),
    ],
)
async def test_each_misfit_has_its_own_reason_and_nothing_is_written(
    desk: Desk, edit: dict[str, object], reason: str, why: str
) -> None:
    path = desk.put("a.py", CODE)
    found, said = await desk.misfits("a.py", edit)
    assert found == reason
    assert why in said
    assert said.endswith("Nothing was written.")
    assert path.read_text() == CODE


@pytest.mark.req("MA-52")
async def test_several_changes_are_all_made_or_none(desk: Desk) -> None:
    path = desk.put("a.py", CODE)
    _, why = await desk.misfits("a.py", one("return 1", "return 11"), one("return 4", "x"), one("def ", "y"))
    assert "Change 2: not found" in why
    assert "Change 3: multiple matches" in why
    assert path.read_text() == CODE
    said = await desk.patch("a.py", one("return 3", "return 33"), one("return 1", "return 11"))
    assert path.read_text() == CODE.replace("return 1", "return 11").replace("return 3", "return 33")
    assert "2 changes, +2 −2 lines" in said


async def test_all_changes_are_looked_for_in_the_file_as_it_was(desk: Desk) -> None:
    desk.put("a.txt", "one\ntwo\n")
    assert (await desk.misfits("a.txt", one("one", "three"), one("three", "four")))[0] == "not_found"


async def test_changes_that_overlap_are_refused(desk: Desk) -> None:
    desk.put("a.txt", "one\ntwo\nthree\n")
    reason, why = await desk.misfits("a.txt", one("two\nthree", "x"), one("one\ntwo", "y"))
    assert (reason, why.split(".txt: ")[1][:29]) == ("overlap", "Changes 2 and 1 overlap. All ")


@pytest.mark.parametrize(
    ("search", "hint"),
    [
        ("def two():\n\treturn 2\n", "only spaces, tabs or blank lines differ: line 5 is 'def two():'"),
        ("def two():\n    return 22\n", "line 6 differs: the file has 'return 2', not 'return 22'"),
        ("def twoo():\n", "line 5 differs: the file has 'def two():', not 'def twoo():'"),
        ("def three():\n    return 3\n    more", "lines 9-10, where the file ends before 'more'"),
    ],
)
async def test_a_miss_names_what_comes_nearest(desk: Desk, search: str, hint: str) -> None:
    desk.put("a.py", CODE)
    assert hint in (await desk.misfits("a.py", one(search, "x")))[1]


async def test_a_miss_of_something_quite_different_names_nothing(desk: Desk) -> None:
    desk.put("a.py", CODE)
    assert "nearest" not in (await desk.misfits("a.py", one("0123456789" * 4, "x")))[1]
    desk.put("empty.py", "")
    assert "nearest" not in (await desk.misfits("empty.py", one("x", "y")))[1]


async def test_several_files_are_changed_together(desk: Desk) -> None:
    first, second = desk.put("a.py", CODE), desk.put("b/c.py", CODE)
    files = [{"file": name, "edits": [one("return 1", f"return {name!r}")]} for name in ("a.py", "b/c.py")]
    said = await desk.works("patch", files=files)
    assert ("return 'a.py'" in first.read_text(), "return 'b/c.py'" in second.read_text()) == (True, True)
    assert said.count("bytes written") == 2
    assert [one.key for one in desk.said] == ["a.py", "b/c.py"]


async def test_of_several_files_none_is_changed_when_one_does_not_fit(desk: Desk) -> None:
    first = desk.put("a.py", CODE)
    desk.put("b.py", "nothing\n")
    edits = [one("return 1", "x")]
    reason, why = await desk.fails("patch", files=[{"file": "a.py", "edits": edits}, {"file": "b.py", "edits": edits}])
    assert reason == "not_found"
    assert why.startswith("b.py: ")
    assert first.read_text() == CODE


async def test_a_file_that_is_named_twice_is_refused_also_through_a_link(desk: Desk) -> None:
    path = desk.put("a.py", CODE)
    (desk.root / "b.py").symlink_to("a.py")
    edits = [one("return 1", "x")]
    _, why = await desk.fails("patch", files=[{"file": "a.py", "edits": edits}, {"file": "b.py", "edits": edits}])
    assert "named twice" in why
    assert path.read_text() == CODE


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({}, "give 'file' and 'edits', or 'files'"),
        ({"file": "a.py"}, "give 'file' and 'edits', or 'files'"),
        ({"file": "a.py", "edits": []}, "length >= 1 - at `$.edits`"),
        ({"file": "a.py", "edits": ["x"]}, "Expected `object`, got `str` - at `$.edits[0]`"),
        ({"file": 3, "edits": [one("a", "b")]}, "Expected `str`, got `int` - at `$.file`"),
        ({"file": "a.py", "edits": [{"search": "a"}]}, "missing required field `replace` - at `$.edits[0]`"),
        ({"file": "a.py", "edits": [{"replace": "a"}]}, "a change has 'search', or 'search_start' and 'search_end'"),
        ({"file": "a.py", "edits": [{"search_start": "a", "replace": ""}]}, "a change has 'search', or"),
        ({"file": "a.py", "edits": [one("a", "b", range="1-2")]}, "at `$.edits[0].range`"),
        ({"file": "a.py", "edits": [one("a", "b", range=[5, 2])]}, "'range' is two line numbers"),
        ({"file": "a.py", "edits": [one(" ", "b")]}, "a change has 'search', or"),
        ({"file": "a.py", "edits": [one("a", "b", serach="c")]}, "unknown field `serach`"),
        ({"file": "a.py", "edits": [one("a", "b")], "files": []}, "length >= 1 - at `$.files`"),
    ],
)
async def test_arguments_that_say_no_change_write_nothing(desk: Desk, arguments: dict[str, object], why: str) -> None:
    path = desk.put("a.py", CODE)
    reason, said = await desk.fails("patch", **arguments)
    assert reason == "arguments"
    assert why in said
    assert path.read_text() == CODE


async def test_a_file_that_is_not_there_is_not_patched(desk: Desk) -> None:
    assert await desk.misfits("new.py", one("a", "b")) == (
        "missing",
        "There is no 'new.py' to change. Use rewrite for a new file. Nothing was written.",
    )


async def test_a_long_diff_is_cut(desk: Desk) -> None:
    desk.put("a.txt", "".join(f"line {number}\n" for number in range(500)))
    said = await desk.patch("a.txt", region("line 10\n", "line 400\n", "x" * 1000 + "\n"))
    assert "more lines of the diff are not shown" in said
    assert len(said.splitlines()) == 122
    assert "+1 −391 lines" in said


async def test_changes_far_apart_are_hunks_with_the_right_numbers(desk: Desk) -> None:
    desk.put("a.txt", "".join(f"line {number}\n" for number in range(1, 101)))
    said = await desk.patch("a.txt", one("line 10\n", "a\nb\n"), one("line 90\n", "c\n"))
    assert [row for row in said.splitlines() if row.startswith("@@")] == ["@@ -7,7 +7,8 @@", "@@ -87,7 +88,7 @@"]
