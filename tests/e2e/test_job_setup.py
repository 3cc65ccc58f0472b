"""What a copy needs of a project: packages that are lent to it, and a command that prepares it."""

import subprocess
from pathlib import Path

import pytest

from tests.e2e.jobs import call, done
from tests.e2e.workshop import Workshop, turns
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")

IGNORED = ".venv/\nnode_modules/\n.deps/\n"
VENV = "python3 -m venv --without-pip .venv"
DONE = (turns("good, red"), done("It is red."))
ALONE = ("Paint it.", "--non-interactive", "--output-format", "json")


def check(line: str, more: str = "") -> str:
    return f"[checks.quick]\nrun = {line!r}\n{more}"


def test_a_virtual_environment_and_node_modules_of_the_person_are_found_and_can_only_be_read(tmp_path: Path) -> None:
    line = ".venv/bin/python -c 'import colour' && test -f node_modules/left-pad/index.js"
    shop = Workshop(tmp_path, check(line), **{".gitignore": IGNORED})
    subprocess.run([*VENV.split()], cwd=shop.repo, check=True)
    (packages,) = (shop.repo / ".venv" / "lib").glob("python*/site-packages")
    (packages / "colour.py").write_text("RED = 1\n")
    shop.puts("node_modules/left-pad/index.js", "module.exports = 1\n")
    spoils = call("execute_script", 2, script="echo x > node_modules/left-pad/index.js")
    ended = shop.runs([DONE[0], spoils, DONE[1]], *ALONE)
    assert ended.code == 0, ended.out
    assert shop.reads("node_modules/left-pad/index.js") == "module.exports = 1\n"


def test_a_copy_is_prepared_once_behind_walls_before_the_checks_and_that_is_in_the_log(tmp_path: Path) -> None:
    line = f"{VENV} && mkdir -p node_modules/left-pad && touch node_modules/left-pad/index.js && echo prepared"
    proof = ".venv/bin/python check.py && test -f node_modules/left-pad/index.js"
    shop = Workshop(tmp_path, check(proof, f"[workspace]\nsetup = {line!r}\n"), **{".gitignore": IGNORED})
    ended = shop.runs([*DONE], "Paint it.", "--yes")
    assert ended.code == 0, ended.err
    assert "quick: passes" in ended.err, "also on the base"
    assert not (shop.repo / ".venv").exists(), "the person's files stay as they are"
    steps = [str(one) for one in shop.types("events", "last", "--output-format", "stream-json").lines]
    assert sum("Prepared with `" in one for one in steps) == 1
    assert "1 file changed" in ended.err, "what git ignores is no part of the work"
