"""patch: exactly what was meant, or nothing and the reason."""

from __future__ import annotations

import pytest

from tests.abilities.tools.files.desk import Desk

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


@pytest.mark.req("MA-52", "AG-64")
async def test_what_is_not_there_is_not_found(desk: Desk) -> None:
    path = desk.put("a.py", CODE)
    reason, why = await desk.misfits("a.py", one("def four():", "x"))
    assert reason == "not_found"
    assert why.startswith("a.py: not found: SEARCH does not occur.")
    assert path.read_text() == CODE


@pytest.mark.req("MA-50", "MA-52", "AG-65")
async def test_what_occurs_several_times_is_refused_with_the_lines(desk: Desk) -> None:
    path = desk.put("a.py", CODE)
    reason, why = await desk.misfits("a.py", one("    return ", "    yield "))
    assert reason == "multiple_matches"
    assert "multiple matches: SEARCH occurs 3 times, at lines 2, 6, 10." in why
    assert path.read_text() == CODE


async def test_matches_that_overlap_are_several(desk: Desk) -> None:
    desk.put("a.txt", "aaa\n")
    assert (await desk.misfits("a.txt", one("aa", "b")))[0] == "multiple_matches"


async def test_countless_matches_are_not_counted_to_the_end(desk: Desk) -> None:
    desk.put("a.txt", "a" * 5000)
    assert "1000 times or more" in (await desk.misfits("a.txt", one("a", "b")))[1]


async def test_range_makes_a_search_unique(desk: Desk) -> None:
    path = desk.put("a.py", CODE)
    await desk.patch("a.py", one("    return ", "    yield ", range=[5, 6]))
    assert path.read_text() == CODE.replace("return 2", "yield 2")


@pytest.mark.req("MA-51", "AG-66")
async def test_a_region_is_replaced_with_both_its_marks(desk: Desk) -> None:
    path = desk.put("a.py", CODE)
    said = await desk.patch("a.py", region("def one():", "return 2\n", "pass\n"))
    assert path.read_text() == "pass\n\n\ndef three():\n    return 3\n"
    assert "+1 −6 lines" in said


@pytest.mark.req("MA-51", "AG-66")
async def test_a_region_is_looked_for_within_the_range(desk: Desk) -> None:
    path = desk.put("a.txt", "begin\na\nend\nbegin\nb\nend\n")
    await desk.patch("a.txt", region("begin", "end", "x", range=[4, 6]))
    assert path.read_text() == "begin\na\nend\nx\n"


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


async def test_marks_may_be_the_same_stretch(desk: Desk) -> None:
    path = desk.put("a.txt", "a\nb\nc\n")
    await desk.patch("a.txt", region("b", "b", "x"))
    assert path.read_text() == "a\nx\nc\n"


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


async def test_an_empty_replacement_deletes(desk: Desk) -> None:
    path = desk.put("a.txt", "one\ntwo\nthree\n")
    assert "+0 −1 lines" in await desk.patch("a.txt", one("two\n", ""))
    assert path.read_text() == "one\nthree\n"


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
