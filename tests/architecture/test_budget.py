"""Every room of `src` stays within its budget of lines and files."""

import tomllib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from tests.architecture.house import ROOT as PROJECT
from tests.architecture.house import Source, sources

BUDGET = Path(__file__).with_name("budget.toml")
ROOT = "src/greenroom/"
PAGE_SUFFIXES = (".ts", ".tsx", ".css")


def measure(files: Iterable[Source]) -> dict[str, tuple[int, int]]:
    """Return the lines and files of each top-level room, and of `src` as a whole."""
    lines: dict[str, int] = defaultdict(int)
    count: dict[str, int] = defaultdict(int)
    for source in files:
        room = source.path.removeprefix(ROOT).partition("/")
        for name in ("src", room[0] if room[1] else "greenroom"):
            lines[name] += len(source.text.splitlines())
            count[name] += 1
    return {name: (lines[name], count[name]) for name in lines}


def over(measured: dict[str, tuple[int, int]], budget: dict[str, dict[str, int]]) -> list[str]:
    """Return what exceeds its budget, or has none."""
    found = [f"{name}: not in budget.toml" for name in measured if name not in budget]
    for name, allowed in budget.items():
        lines, files = measured.get(name, (0, 0))
        if lines > allowed["lines"]:
            found.append(f"{name}: {lines:,} lines of {allowed['lines']:,}")
        if files > allowed["files"]:
            found.append(f"{name}: {files} files of {allowed['files']}")
    return found


def measure_page(folder: Path) -> int:
    """Return the lines of the page's source: TypeScript and style sheets."""
    paths = [path for path in folder.rglob("*") if path.suffix in PAGE_SUFFIXES and "node_modules" not in path.parts]
    return sum(len(path.read_text("utf-8").splitlines()) for path in paths)


def read_budget() -> tuple[dict[str, dict[str, int]], int]:
    """Return the budget of each room, and the lines that the page may have."""
    budget = tomllib.loads(BUDGET.read_text("utf-8"))
    return {name: allowed for name, allowed in budget.items() if name != "web"}, budget["web"]["lines"]


def test_every_room_is_within_its_budget() -> None:
    ours = [source for source in sources() if source.path.startswith(ROOT)]
    assert over(measure(ours), read_budget()[0]) == []


def test_the_page_is_within_its_budget() -> None:
    assert measure_page(PROJECT / "web") <= read_budget()[1]


def test_only_the_page_s_own_lines_are_counted(tmp_path: Path) -> None:
    for name in ("src/a.ts", "src/b.tsx", "src/c.css", "node_modules/d.ts", "src/e.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\ny\n")
    assert measure_page(tmp_path) == 6


def test_a_room_over_its_budget_or_without_one_is_found() -> None:
    files = [Source(path=f"{ROOT}core/a.py", text="x\ny\n"), Source(path=f"{ROOT}core/b.py", text="x\n")]
    measured = measure(files)
    assert measured == {"src": (3, 2), "core": (3, 2)}
    assert over(measured, {"src": {"lines": 3, "files": 2}, "core": {"lines": 3, "files": 2}}) == []
    tight = {"src": {"lines": 2, "files": 2}, "core": {"lines": 3, "files": 1}}
    assert over(measured, tight) == ["src: 3 lines of 2", "core: 2 files of 1"]
    assert over(measured, {"src": {"lines": 3, "files": 2}}) == ["core: not in budget.toml"]
