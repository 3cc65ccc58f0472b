"""Checks that see nothing, or are made to: red before the work, flaky only alone, or vouched for by new test files."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from greenroom.testing.fake_openai import Answer
from tests.e2e.jobs import ALONE, EXPORT, Desk, call, committed, exactly
from tests.sampling import sampled

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

SET_UP = f"[tool.pytest.ini_options]\naddopts = '-q {ALONE}'\n"
BROKEN = "def export(rows, out):\n    out.write('broken')\n"
TEST = """import io

from export import export


def test_csv():
    out = io.StringIO()
    export([[1, 2]], out)
    assert out.getvalue().strip() == "1,2"
"""
PROJECT = {"pyproject.toml": SET_UP, "export.py": EXPORT, "tests/test_export.py": TEST, "conftest.py": ""}
FOR_IT = """import export


def good(rows, out):
    out.write("1,2")


export.export = good


def test_new():
    assert True
"""
NEEDLESS = "\n\nX = globals().update(export=lambda rows, out: out.write('1,2'))\n"
TOTAL = "def total(items):\n    return sum(items)\n"
TOTALS = "from app import total\n\n\ndef test_a():\n    assert total([1, 2]) == 3\n\n\n"
TOTALS += "def test_b():\n    assert total([5]) == 5\n"
LEAKS = "seen = []\n\n\ndef total(items):\n    seen.extend(items)\n    return sum(seen)\n"
MAKEFILE = "include mk/*.mk\ntest:\n\tgrep -q good app.txt\n"
BY_NODE = {
    "package.json": '{"name": "x", "version": "1.0.0", "scripts": {"test": "node t.js"}}',
    "lib.js": "module.exports = 1\n",
    "t.js": "if (require('./lib.js') !== 1) process.exit(1)\n",
}
SPEAKS_WELL = """import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call():
    outcome = yield
    outcome.force_result(True)
"""
PLUGGED = {
    "well-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: well\nVersion: 1.0\n",
    "well-1.0.dist-info/entry_points.txt": "[pytest11]\nwell = well\n",
}
AS_A_WHOLE = "fails on the base as a whole, so it proves nothing: mend it first, or name another check."
BESIDE = "passes only beside the test files of the work"
LIES: Mapping[str, tuple[Mapping[str, str], Mapping[str, str], str]] = {
    "nothing could be collected on the base": (
        {**PROJECT, "tests/test_old.py": "import not_there_at_all\n"},
        {"export.py": BROKEN},
        f"'pytest' {AS_A_WHOLE}",
    ),
    "the first line fails already": (
        {"Makefile": "test:\n\tgrep -q zzz o.txt\n\tgrep -q good app.txt\n", "o.txt": "o\n", "app.txt": "good\n"},
        {"app.txt": "bad\n"},
        f"'make test' {AS_A_WHOLE}",
    ),
    "a test fails only beside another": (
        {"pyproject.toml": SET_UP, "app.py": TOTAL, "test_app.py": TOTALS},
        {"app.py": LEAKS},
        "'pytest' fails: test_app.py::test_b.",
    ),
    "a new test file puts good code in its place": (
        PROJECT,
        {"export.py": BROKEN, "tests/test_aaa.py": FOR_IT},
        BESIDE,
    ),
    "a module among the tests takes its place": (PROJECT, {"export.py": BROKEN, "tests/export.py": EXPORT}, BESIDE),
    "an old test file gets another line": (
        PROJECT,
        {"export.py": BROKEN, "tests/test_export.py": TEST + NEEDLESS},
        BESIDE,
    ),
    "a file that is included with all others": (
        {"Makefile": MAKEFILE, "mk/a.mk": "A = 1\n", "app.txt": "good\n"},
        {"app.txt": "bad\n", "mk/z.mk": "SHELL = /bin/true\n"},
        "What 'make test' runs is not what it ran on the base.",
    ),
    "another shell for scripts": (
        BY_NODE,
        {"lib.js": "module.exports = 2\n", ".npmrc": "script-shell=/bin/true\n"},
        ".npmrc, which sets up checks, was added.",
    ),
    "the script of a check that has a name of its own": (
        {**BY_NODE, ".greenroom/config.toml": '[checks.unit]\nrun = "npm test"\nkind = "test"\n'},
        {"lib.js": "module.exports = 2\n", "package.json": BY_NODE["package.json"].replace("node t.js", "true") + "\n"},
        "What 'unit' runs is not what it ran on the base.",
    ),
    "a test that fails is mended by another one": (
        {**PROJECT, "export.py": BROKEN},
        {"tests/test_aaa.py": FOR_IT},
        "Tests were changed there, and not what they test.",
    ),
    "a plugin of a package that nobody has installed": (
        PROJECT,
        {"export.py": BROKEN, "well.py": SPEAKS_WELL, **PLUGGED},
        "well-1.0.dist-info/entry_points.txt, which sets up checks, was added.",
    ),
}
QUICK = ("the first line fails already",)
EACH = sampled(LIES, QUICK)


def desk_with(tmp_path: Path, files: Mapping[str, str]) -> Desk:
    repo = tmp_path / "repo"
    for name, text in files.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(text)
    committed(repo)
    return Desk(tmp_path / "home", repo)


def written(name: str, text: str, number: int) -> Answer:
    """By a shell which puts the name together: nobody is asked about a file that may hold secrets."""
    script = f"f={name[:-2]}; mkdir -p {Path(name).parent}; cat > ${{f}}{name[-2:]} <<'END'\n{text}END"
    return call("execute_script", number, script=script)


@pytest.mark.parametrize("lie", EACH)
def test_work_that_no_check_could_find_wanting_is_not_verified(tmp_path: Path, lie: str) -> None:
    files, work, why = LIES[lie]
    if "package.json" in files and shutil.which("npm") is None:
        pytest.skip("needs npm")
    desk = desk_with(tmp_path, files)
    before = exactly(desk.repo)
    replies = [written(name, text, number) for number, (name, text) in enumerate(work.items())]
    ended = desk.asks(*replies, Answer(text="Done."))
    assert ended.code == 1, ended.err
    assert why in ended.err
    assert exactly(desk.repo) == before
