"""Play a project from its set-up to both verdicts: one row of the table."""

import time
from dataclasses import dataclass
from pathlib import Path

from tests.projects import other_projects, python_projects
from tests.projects.play import Person, Played
from tests.projects.project import Change, Expected, Project
from tests.projects.setup import Unavailable, apply_edit, prepare, run

PROJECTS = {project.name: project for project in (*python_projects.PROJECTS, *other_projects.PROJECTS)}


@dataclass(frozen=True)
class Row:
    """What came of a project: both runs, or the reason why it was skipped."""

    project: Project
    skipped: str = ""
    tier: str = ""
    setup: float = 0.0
    right: Played | None = None
    breaking: Played | None = None
    harm: str = ""

    @property
    def expected(self) -> Expected:
        """The exit codes expected in this tier."""
        return self.project.bubblewrap if self.tier == "bubblewrap" else self.project.landlock

    @property
    def wrong(self) -> tuple[str, ...]:
        """Each thing that is not as expected."""
        found = [self.harm] if self.harm else []
        runs = (("right", self.right, self.expected.right), ("breaking", self.breaking, self.expected.breaking))
        for name, played, code in runs:
            if played is None:
                continue
            if played.code != code:
                found.append(f"{name}: exit {played.code}, expected {code}")
            if (played.code == 0) != (played.verdict == "verified"):
                found.append(f"{name}: exit {played.code}, verdict {played.verdict}")
        return tuple(found)

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        checks = " ".join(self.right.checks) if self.right else f"skipped: {self.skipped}"
        name = f"{self.project.name} {self.project.version}"
        runs = ("" if played is None else _tell(played) for played in (self.right, self.breaking))
        verdict = "" if self.skipped else "as expected" if not self.wrong else "; ".join(self.wrong)
        return (name, self.project.kind, checks, f"{self.setup:.0f} s", *runs, verdict)


HEADERS = ("project", "kind", "checks (!: not on the base)", "set-up", "right", "breaking", "judgement")


def _tell(played: Played) -> str:
    return f"{played.verdict} / {played.code} / {played.seconds:.0f} s"


def play(project: Project, home: Path) -> Row:
    """Set the project up in this home and play both changes; the person's files must stay as they are."""
    folder = home / "code" / project.name.split("/")[-1]
    folder.parent.mkdir(parents=True)
    began = time.monotonic()
    try:
        prepare(project, folder)
        run_tests(project, folder)
    except Unavailable as reason:
        return Row(project, skipped=str(reason), setup=time.monotonic() - began)
    setup = time.monotonic() - began
    person, before = Person(home), _look(folder)
    right = person.play(folder, project.right)
    breaking = person.play(folder, project.breaking)
    harm = "" if _look(folder) == before else "the person's files were changed"
    if run(("git", "rev-list", "--all", "--count", "--", ".venv", "node_modules"), folder).stdout.strip() != "0":
        harm = "an environment was committed"
    return Row(project, "", person.find_tier(folder), setup, right, breaking, harm)


def _look(folder: Path) -> str:
    return "".join(run(("git", *words), folder).stdout for words in (("rev-parse", "HEAD"), ("status", "--short")))


def run_tests(project: Project, folder: Path) -> None:
    """Run the project's own tests; where they fail without Greenroom, there is nothing to show."""
    ended = run(project.test, folder)
    if ended.returncode:
        raise Unavailable(f"its own tests fail on this machine: {ended.stdout.strip()[-200:]}")


def try_by_hand(project: Project, home: Path) -> str:
    """Make both changes without Greenroom; return what is wrong with them, or nothing."""
    folder = home / project.name.split("/")[-1]
    try:
        prepare(project, folder)
        run_tests(project, folder)
    except Unavailable as reason:
        return str(reason)
    right, breaking = (_try(project, folder, change) for change in (project.right, project.breaking))
    if right != 0:
        return f"the right change fails: exit {right}"
    return "" if breaking else "the breaking change passes"


def _try(project: Project, folder: Path, change: Change) -> int:
    for edit in change.edits:
        apply_edit(edit, folder)
    code = run(project.test, folder).returncode
    run(("git", "checkout", "--quiet", "."), folder)
    for edit in change.edits:
        if not edit.search:
            (folder / edit.file).unlink()
    return code


def draw(rows: list[tuple[str, ...]]) -> str:
    """Return the table as Markdown."""
    lines = [HEADERS, tuple("---" for _ in HEADERS), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def explain(row: Row, *, verbose: bool = False) -> str:
    """Return how both runs ended, and why."""
    lines = [f"== {' | '.join(row.cells)} | {row.tier}"]
    for name, played in (("right", row.right), ("breaking", row.breaking)):
        if played is not None:
            lines += [f"  {name}: {reason}" for reason in played.reasons]
            lines += [played.printed] if verbose else []
    return "\n".join(lines)
