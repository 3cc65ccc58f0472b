"""What a copy needs, by the settings: whose line is run, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.app.jobs.planning import plan_of, setup_of
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
