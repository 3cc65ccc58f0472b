"""list_files and search_files: what there is, bounded in size and time."""

from __future__ import annotations

import asyncio
import time

import pytest

from greenroom.abilities.tools.files import search, tools
from greenroom.abilities.tools.files.tools import build_file_tools
from greenroom.adapters.files import local_files
from tests.abilities.tools.files.desk import Desk
from tests.speed import is_soon


@pytest.fixture
def project(desk: Desk) -> Desk:
    """A small project with things that git ignores."""
    desk.put(".gitignore", "*.log\nbuild/\n")
    desk.put("src/app.py", "import os\n\n\ndef load():\n    return os.name\n")
    desk.put("src/app.ts", "export const load = 1\n")
    desk.put("docs/guide.md", "load it\n")
    desk.put("build/out.py", "def load(): ...\n")
    desk.put("a.log", "load\n")
    desk.put(".git/config", "load\n")
    desk.put("picture.bin", b"\x00\x01load\n")
    return desk


async def rows(desk: Desk, **arguments: object) -> list[str]:
    return (await desk.works("list_files", **arguments)).splitlines()[1:]


async def test_files_are_listed_without_those_that_git_ignores(project: Desk) -> None:
    found = await rows(project)
    assert found == [".gitignore", "docs/guide.md", "picture.bin", "src/app.py", "src/app.ts"]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"glob": "*.py"}, ["src/app.py"]),
        ({"glob": "**/*.{py,ts}"}, ["src/app.py", "src/app.ts"]),
        ({"folder": "src"}, ["src/app.py", "src/app.ts"]),
        ({"folder": "src", "glob": "app.*"}, ["src/app.py", "src/app.ts"]),
        ({"folder": "src", "glob": "/app.py"}, ["src/app.py"]),
        ({"glob": "nothing*"}, []),
    ],
)
async def test_files_are_listed_by_folder_and_pattern(
    project: Desk, arguments: dict[str, object], found: list[str]
) -> None:
    assert await rows(project, **arguments) == found


async def test_a_list_is_bounded_and_says_so(desk: Desk) -> None:
    for number in range(30):
        desk.put(f"f{number:02}", "")
    (desk.root / "link").symlink_to("f00")
    said = await desk.works("list_files", limit=5)
    assert said.startswith("5 files of 31: narrow it down with folder or glob.")
    assert "link (a link)" in await desk.works("list_files")
    long = Desk(desk.root / "long")
    for number in range(300):
        long.put(f"{'n' * 200}{number:03}", "")
    assert len((await long.works("list_files", limit=1000)).encode()) <= long.tools["list_files"].card.shown


@pytest.mark.parametrize(
    ("tool", "arguments", "why"),
    [
        ("list_files", {"folder": "nowhere"}, "There is no 'nowhere'"),
        ("list_files", {"folder": "a.txt"}, "should be a folder"),
        ("list_files", {"glob": "*a*b*c*d"}, "too many stars"),
        ("list_files", {"glob": "{a,b}" * 8}, "stands for more than 64"),
        ("list_files", {"glob": "\\"}, "cannot be used as file patterns"),
        ("search_files", {"pattern": "("}, "is not a regular expression"),
        ("search_files", {"pattern": "(" * 900}, "is not a regular expression"),
        ("search_files", {"pattern": "a" * 2000}, "1000 are allowed"),
        ("search_files", {"pattern": "a", "context": -1}, "`int` >= 0 - at `$.context`"),
        ("search_files", {"pattern": "a", "literal": "maybe"}, "Expected `bool`, got `str` - at `$.literal`"),
        ("search_files", {"pattern": "a", "folder": "../x"}, "'..'"),
    ],
)
async def test_what_cannot_be_looked_for_is_refused(
    desk: Desk, tool: str, arguments: dict[str, object], why: str
) -> None:
    desk.put("a.txt", "a\n")
    assert why in (await desk.fails(tool, **arguments))[1]


async def test_a_search_names_file_and_line(project: Desk) -> None:
    said = await project.works("search_files", pattern=r"\bload\b")
    assert said.splitlines() == [
        "3 matches in 3 files; 1 files were passed over: no text, too large, or gone.",
        "docs/guide.md:1: load it",
        "src/app.py:4: def load():",
        "src/app.ts:1: export const load = 1",
    ]


async def test_a_search_shows_the_lines_around_each_once(project: Desk) -> None:
    said = await project.works("search_files", pattern="os", glob="*.py", context=1)
    assert said.splitlines()[1:] == [
        "src/app.py:1: import os",
        "src/app.py-2- ",
        "src/app.py-4- def load():",
        "src/app.py:5:     return os.name",
        "src/app.py-6- ",
    ]


async def test_a_text_is_looked_for_as_it_is_written_or_in_any_case(project: Desk) -> None:
    assert "1 matches" in await project.works("search_files", pattern="load()", literal=True)
    assert "0 matches" in await project.works("search_files", pattern="LOAD()", literal=True)
    assert "1 matches" in await project.works("search_files", pattern="LOAD()", literal=True, ignore_case=True)


async def test_a_search_is_bounded_and_says_so(desk: Desk) -> None:
    desk.put("a.txt", ("needle " + "x" * 1000 + "\n") * 500)
    said = await desk.works("search_files", pattern="needle", limit=7)
    assert said.startswith("7 matches in 1 files; there may be more")
    said = await desk.works("search_files", pattern="needle", limit=999)
    assert "more are not shown" in said
    assert len(said.encode()) <= desk.tools["search_files"].card.shown + 1000


async def test_of_very_long_lines_the_beginning_is_searched(desk: Desk) -> None:
    desk.put("a.txt", "x" * 20_000 + "needle\n")
    said = await desk.works("search_files", pattern="needle$")
    assert said == "0 matches in 0 files; of very long lines only the beginning was looked at."


async def test_a_catastrophic_pattern_ends_in_time_and_holds_up_nobody(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "SEARCH_TIMEOUT_S", 0.5)
    desk.put("a.txt", "a" * 5000 + "\n")
    ticks = 0

    async def others() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    beside = asyncio.create_task(others())
    start = time.monotonic()
    reason, why = await desk.fails("search_files", pattern="(a|aa)+c")
    beside.cancel()
    assert (reason, why) == ("too_slow", "The search took too long. Use a simpler pattern, a glob or a folder.")
    assert is_soon(time.monotonic() - start, 5)
    assert ticks > 10


async def test_what_was_found_before_the_time_was_over_is_told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "SEARCH_TIMEOUT_S", 0.5)
    desk.put("a.txt", "b\n")
    desk.put("z.txt", "a" * 5000 + "\n")
    said = await desk.works("search_files", pattern="^b|(a|aa)+c")
    assert said.startswith("1 matches in 1 files; the search took too long")


def test_a_hunt_knows_when_its_time_is_over() -> None:
    hunt = search.PatternSearch("a", literal=False, ignore_case=False, seconds=-1)
    assert hunt.is_out_of_time
    with pytest.raises(search.TooSlow):
        hunt.find_matches("a", 0, 1)


async def test_hidden_files_are_neither_listed_nor_searched(project: Desk) -> None:
    tools = build_file_tools(project.files, hides=lambda path: path.startswith("src/"))
    project.tools = {tool.name: tool for tool in tools}
    assert "src/app.py" not in await project.works("list_files")
    assert "src/app.py" not in await project.works("search_files", pattern="load")
    assert "docs/guide.md" in await project.works("search_files", pattern="load")


async def test_a_tree_that_is_too_large_is_looked_at_in_part_and_that_is_said(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_files, "MAX_ENTRIES", 20)
    for number in range(40):
        desk.put(f"folder{number:02}/wanted.txt", "wanted\n")
    listed = await desk.works("list_files", glob="nothing*")
    assert listed.startswith("0 files. What .gitignore names is left out. Not everything was looked at:")
    assert "there is too much in this folder. Name one below it." in listed
    found = await desk.works("search_files", pattern="wanted")
    assert "; not everything was looked at, there is too much in this folder: name one below it." in found
    assert "Not everything" not in await desk.works("list_files", folder="folder01")
