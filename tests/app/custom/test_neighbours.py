"""What a file imports from beside it is what was read when it was looked at: never the disk, never compiled code."""

from __future__ import annotations

import py_compile
from pathlib import Path
from py_compile import PycInvalidationMode

import pytest

from greenroom.app.function_tool import Tool
from tests.app.custom.bench import Place

LATE = '''
from greenroom import tool

@tool(effect="pure")
def late() -> str:
    """Looks beside it, when it is called."""
    from . import _h
    return _h.WHAT
'''


def called(place: Place) -> object:
    """What the one tool says."""
    return loaded(place)()


def loaded(place: Place) -> Tool[[], object]:
    """The one tool that there is."""
    (tool,) = place.equipment().tools
    assert isinstance(tool, Tool)
    return tool


@pytest.mark.parametrize("whose", ["project", "own"])
def test_an_import_that_comes_late_finds_what_was_agreed_to(place: Place, whose: str) -> None:
    write = place.project if whose == "project" else place.yours
    place.agreed = {"late.py"}
    write("tools/late.py", LATE)
    helper = write("tools/_h.py", "WHAT = 'agreed'\n")
    tool = loaded(place)
    helper.write_text("WHAT = 'changed'\n")
    assert tool() == "agreed"
    helper.unlink()
    assert tool() == "agreed"


def test_a_helper_that_changes_is_not_the_old_one_in_a_process_that_lives_long(place: Place) -> None:
    place.yours("tools/late.py", LATE)
    helper = place.yours("tools/_h.py", "WHAT = 'old'\n")
    before = loaded(place)
    assert before() == "old"
    helper.write_text("WHAT = 'new'\n")
    assert called(place) == "new"
    assert before() == "old"


@pytest.mark.parametrize("whose", ["project", "own"])
def test_a_planted_compiled_file_never_runs(place: Place, tmp_path: Path, whose: str) -> None:
    write = place.project if whose == "project" else place.yours
    place.agreed = {"late.py"}
    write("tools/late.py", LATE)
    helper = write("tools/_h.py", "WHAT = 'read'\n")
    evil = tmp_path / "evil.py"
    evil.write_text("WHAT = 'planted'\n")
    cached = helper.parent / "__pycache__" / "_h.cpython-311.pyc"
    py_compile.compile(str(evil), str(cached), invalidation_mode=PycInvalidationMode.UNCHECKED_HASH)
    assert called(place) == "read"


def test_the_text_of_what_runs_is_what_was_read(place: Place) -> None:
    path = place.yours("tools/late.py", LATE)
    loader = loaded(place).function.__globals__["__loader__"]
    path.write_text("")
    assert loader.get_source(loader.name) == LATE
    with pytest.raises(FileNotFoundError):
        loader.get_data(str(path.parent / "nothing"))
