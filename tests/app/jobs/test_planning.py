"""What a copy needs, by the settings: whose line is run, and where."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from greenroom.abilities.checks.changed import Changed
from greenroom.app.checks.base_look import BaseLook
from greenroom.app.checks.folder import FolderLook
from greenroom.app.jobs.planning import checks_then, plan_of, setup_of
from greenroom.app.jobs.preparing import Setup

LINE = '[workspace]\nsetup = "uv sync"\nseconds = "5m"\nlend = [".deps"]\n'
CHECK = '[checks.unit]\nrun = "make unit"\n'


@pytest.fixture(name="root")
def _root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of somebody whose settings nobody has written yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("GREENROOM_CONFIG", raising=False)
    (tmp_path / "project" / ".greenroom").mkdir(parents=True)
    (tmp_path / "config" / "greenroom").mkdir(parents=True)
    return tmp_path / "project"


def own(root: Path, text: str) -> None:
    (root.parent / "config" / "greenroom" / "config.toml").write_text(text)


def brought(root: Path, text: str) -> None:
    (root / ".greenroom" / "config.toml").write_text(text)


def test_without_a_word_nothing_is_run(root: Path) -> None:
    assert setup_of(root, walls=False) == Setup()


def test_a_persons_own_line_is_run_also_without_walls(root: Path) -> None:
    own(root, LINE)
    assert setup_of(root, walls=False) == Setup(line="uv sync", seconds=300.0, lend=(".deps",))


def test_a_line_that_comes_with_the_project_is_run_behind_walls_and_else_it_is_said_that_it_is_not(root: Path) -> None:
    brought(root, LINE)
    assert setup_of(root, walls=True).left == ""
    left = setup_of(root, walls=False).left
    assert left.startswith("`uv sync` was not run: ")
    assert "no walls" in left


def test_a_check_of_the_project_proves_behind_walls_and_a_persons_own_everywhere(root: Path) -> None:
    brought(root, CHECK)
    assert [one.name for one in plan_of(root, walls=True).run] == ["unit"]
    bare = plan_of(root, walls=False)
    assert (bare.run, [one.name for one in bare.open], len(bare.left)) == ((), ["unit"], 1)
    (root / ".greenroom" / "config.toml").unlink()
    own(root, CHECK)
    assert [one.name for one in plan_of(root, walls=False).run] == ["unit"]


def test_where_the_root_has_no_test_the_projects_below_it_have(root: Path) -> None:
    for folder in ("web", "packages/one"):
        (root / folder).mkdir(parents=True)
        (root / folder / "pytest.ini").touch()
    found = plan_of(root, walls=True).run
    assert {(one.folder, one.line) for one in found} == {
        ("packages/one", "python3 -m pytest"),
        ("web", "python3 -m pytest"),
    }
    brought(root, CHECK)
    assert [one.name for one in plan_of(root, walls=True).run] == ["unit"], "somebody has said what counts"


PROJECT = "[tool.pytest.ini_options]\n"


def then(root: Path, before: Iterable[str], *changes: Changed, begun: bool = True) -> list[str]:
    """The names of the checks that there were, where these files lay."""
    look = BaseLook(FolderLook(root), changes, before)
    return [one.name for one in checks_then(root, look, begun=begun)]


def test_what_came_into_the_folder_since_the_work_began_is_no_judge_of_it(root: Path) -> None:
    (root / "pyproject.toml").write_text(PROJECT)
    (root / "test_a.py").write_text("def test_a(): ...\n")
    new = [Changed(path=name, after=b"") for name in ("pyproject.toml", "test_a.py")]
    assert then(root, [], *new) == []
    assert then(root, [], *new, begun=False) == ["pytest"], "what lies there when it begins, known to git or not"
    assert plan_of(root, walls=True, then=()).run == ()


@pytest.mark.parametrize("ignored", [False, True])
def test_a_folder_that_the_work_has_made_was_not_there_whatever_lies_in_it(root: Path, ignored: bool) -> None:
    (root / "Rakefile").write_text("task :test\n")
    (root / "test").mkdir()
    (root / "test" / "a_test.rb").write_text("")
    if ignored:
        (root / "test" / "made.log").write_text("")
    assert then(root, ["Rakefile", "test/old_test.rb"]) == ["rake test"]
    assert then(root, ["Rakefile", "test/old_test.rb"], Changed(path="test/a_test.rb", after=b"")) == ["rake test"]
    assert then(root, ["Rakefile"], Changed(path="test/a_test.rb", after=b"")) == []


def test_what_was_there_before_and_what_a_person_wants_are_its_judges_still(root: Path) -> None:
    (root / "pyproject.toml").write_text(PROJECT)
    (root / "Makefile").write_text("check:\n\ttrue\n")
    own(root, '[checks.unit]\nrun = "make check"\n')
    changes = [
        Changed(path="pyproject.toml", before=PROJECT.encode(), after=b""),
        Changed(path="Makefile", after=b"check:\n\ttrue\n"),
    ]
    before = BaseLook(FolderLook(root), changes, ["pyproject.toml"])
    plan = plan_of(root, walls=True, then=checks_then(root, before, begun=True))
    assert [one.name for one in plan.run] == ["unit", "pytest"]
    own(root, '[checks.unit]\nrun = "make all"\n')
    lines = [one.line for one in plan_of(root, walls=True, then=plan.found).run]
    assert lines[0] == "make all", "theirs is that of now"


def test_checks_that_are_gone_from_the_folder_judge_the_work_that_began_with_them(tmp_path: Path, root: Path) -> None:
    (root / "pyproject.toml").write_text(PROJECT)
    (root / "test_a.py").write_text("def test_a(): ...\n")
    known = plan_of(root, walls=True).found
    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    for name in ("pyproject.toml", "test_a.py"):
        (root / name).unlink()
    (root / "Makefile").write_text("check:\n\ttrue\n")
    assert plan_of(root, walls=True, then=known).run == known
    look = BaseLook(FolderLook(copy), (), ["pyproject.toml", "test_a.py"])
    assert [one.name for one in checks_then(root, look, begun=True)] == ["pytest"]
    assert [one.name for one in checks_then(root, look, begun=False)] == ["make check", "pytest"]
