"""Without walls a package that is installed from the person's own folder is imported from there, not from a copy."""

from __future__ import annotations

import sys
import venv
from pathlib import Path

import pytest

from greenroom.abilities.checks.looking import Place
from greenroom.abilities.checks.own_packages import imports_them, python_of
from greenroom.adapters.commands.plain import PlainCommands
from greenroom.app.checks.folder import FolderLook
from greenroom.app.checks.own_code import tests_own_code as found_by
from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import Check
from tests.abilities.checks.shelves import Table
from tests.app.checks.projects import written
from tests.app.jobs.deliveries import job, verdict_of

APP = "def add(a, b):\n    return a + b\n"
TEST = (
    "import sums, unittest\n\n\nclass T(unittest.TestCase):\n    def test_add(self):\n"
    "        self.assertEqual(sums.add(1, 2), 3)\n"
)
MODULE = Check(name="unittest", line="python3 -m unittest discover -s tests", kind="test", why="w.")
PLAIN = evolve(MODULE, name="pytest", line="pytest")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def installed(tmp_path: Path, folder: str, *, finder: bool = False) -> Path:
    """An environment into which a folder of the person's repository was installed; its Python."""
    venv.EnvBuilder(symlinks=True).create(tmp_path / "env")
    (packages,) = (tmp_path / "env").glob("lib/python3*/site-packages")
    source = tmp_path / "repo" / folder
    if finder:
        mapping = {"sums": str(source / "sums")}
        (packages / "__editable___app_1_finder.py").write_text(
            f"import sys\nMAPPING = {mapping!r}\nsys.path.append({str(tmp_path / 'none')!r})\n"
        )
        (packages / "__editable__.app.pth").write_text("import __editable___app_1_finder\n")
    else:
        (packages / "app.pth").write_text(f"{source}\n")
    return tmp_path / "env" / "bin" / "python"


@pytest.mark.parametrize("finder", [False, True], ids=["by a path", "by a finder"])
async def test_a_check_that_tests_the_persons_own_files_proves_nothing(tmp_path: Path, finder: bool) -> None:
    python = installed(tmp_path, "src", finder=finder)
    line = f"{python} -m unittest discover -s tests" if not finder else f"{python} -c pass # pytest"
    async with job(tmp_path, line, {"src/sums.py": APP, "tests/test_sums.py": TEST}) as work:
        work.writes("src/sums.py", APP.replace("a + b", "0"))
        told = verdict_of(await work.delivers())
    assert told.state == "unproven"
    (missing,) = told.missing
    source = str(tmp_path / "repo" / "src")
    assert missing.startswith(f"'quick' tests your own files, and not the work: a package is installed from {source!r}")


async def test_where_the_copy_goes_first_on_the_path_it_is_what_is_tested(tmp_path: Path) -> None:
    python = installed(tmp_path, ".")
    line = f"{python} -m unittest discover -s tests"
    async with job(tmp_path, line, {"sums.py": APP, "tests/test_sums.py": TEST}) as work:
        work.writes("sums.py", APP.replace("a + b", "0"))
        assert verdict_of(await work.delivers()).missing == ["'quick' fails: test_add (test_sums.T.test_add)."]
        work.writes("sums.py", APP.replace("a + b", "b + a"))
        assert verdict_of(await work.delivers()).state == "verified"


async def test_commands_that_see_the_work_at_the_place_of_the_own_files_test_the_work(tmp_path: Path) -> None:
    python = installed(tmp_path, "src")
    root = written(tmp_path / "repo", {"src/sums.py": APP})
    check = evolve(MODULE, line=f"{python} -m unittest")
    commands = PlainCommands(root)
    try:
        assert await found_by([check], commands, FolderLook(root), root) == ()
        assert await found_by([check], commands, None, tmp_path) == ()
        elsewhere = await found_by([check], commands, FolderLook(root), tmp_path)
    finally:
        commands.close()
    assert len(elsewhere) == 1, "seen from another place it is somebody's own"


@pytest.mark.parametrize(
    ("check", "own", "files", "imports"),
    [
        (MODULE, "src", {}, True),
        (MODULE, "src", {"pytest.ini": "[pytest]\npythonpath = lib ./src\n"}, False),
        (MODULE, "src", {"pyproject.toml": "[tool.pytest.ini_options]\npythonpath = ['src']\n"}, False),
        (MODULE, "src", {"setup.cfg": "[tool:pytest]\npythonpath = src\n"}, False),
        (MODULE, "src", {"pyproject.toml": "[tool.pytest.ini_options]\npythonpath = 'lib'\n"}, True),
        (MODULE, ".", {}, False),
        (PLAIN, ".", {}, True),
        (PLAIN, ".", {"conftest.py": ""}, False),
    ],
)
def test_what_goes_before_an_installed_package_is_known(
    check: Check, own: str, files: dict[str, str], imports: bool
) -> None:
    assert imports_them(check, own, Place(Table(files))) is imports


@pytest.mark.parametrize(
    ("check", "python"),
    [
        (MODULE, "python3"),
        (PLAIN, "python3"),
        (evolve(PLAIN, line="uv run --offline python -m pytest"), "python"),
        (evolve(PLAIN, line="make test", means="test:\n.venv/bin/pytest"), "python3"),
        (evolve(PLAIN, line=f"X=1 {sys.executable} -m pytest"), sys.executable),
        (evolve(PLAIN, line="npm test"), ""),
        (evolve(PLAIN, name="tox", line="tox", means="commands = pytest"), ""),
        (evolve(PLAIN, kind="lint", line="python3 -m ruff"), ""),
    ],
)
def test_the_python_of_a_check_is_asked(check: Check, python: str) -> None:
    assert python_of(check) == python
