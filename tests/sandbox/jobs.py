"""Honest work that must succeed in a sandbox: what agents do all day."""

from __future__ import annotations

import shutil
import sys
import venv
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import files
from pathlib import Path
from typing import Final

from tests.sandbox.attempts.git import repository
from tests.sandbox.stage import Stage

PYTEST: Final = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")


def nothing(_stage: Stage) -> None:
    """An empty workspace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A shell script that prints `expected` at the end. `quick` jobs are part of every test run."""

    name: str
    script: str
    expected: str
    ready: Callable[[Stage], None] = nothing
    uses: tuple[str, ...] = ()
    quick: bool = False

    def __str__(self) -> str:
        return self.name


def environment(place: Path) -> Path:
    """Make a virtual environment without pip. Return its package folder."""
    venv.create(place, with_pip=False, symlinks=True)
    (packages,) = place.glob("lib/python*/site-packages")
    return packages


def _tested(stage: Stage) -> None:
    """Make a project with tests, and pytest in its environment as `pip install` leaves it."""
    packages = environment(stage.work / ".venv")
    for name in PYTEST:
        for one in files(name) or ():
            if ".." not in one.parts and one.suffix != ".pyc":
                (packages / one).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(Path(str(one.locate())), packages / one)
    stage.put(stage.work / "test_it.py", "def test_it(tmp_path):\n    (tmp_path / 'a').write_text('x')\n")


def _node(stage: Stage) -> None:
    stage.put(stage.work / "package.json", '{"name": "it", "scripts": {"test": "node test.js"}}')
    stage.put(stage.work / "test.js", "require('assert').strictEqual(1 + 1, 2); console.log('all is well')\n")


def _c(stage: Stage) -> None:
    stage.put(stage.work / "Makefile", "it: it.o\n\tcc -o it it.o\nit.o: it.c\n\tcc -c it.c\n")
    stage.put(stage.work / "it.c", '#include <stdio.h>\nint main(void) { puts("built"); return 0; }\n')


SERVER: Final = """
python3 -m http.server --bind 127.0.0.1 8765 >/dev/null 2>&1 &
echo served >page
for turn in $(seq 100); do (exec 5<>/dev/tcp/localhost/8765) 2>/dev/null && break; sleep 0.1; done
python3 -c "import urllib.request as r; print(r.urlopen('http://localhost:8765/page').read().decode())"
kill %1
"""
POOL: Final = """
cat >pool.py <<'END'
import multiprocessing
def square(number):
    return number * number
if __name__ == '__main__':
    with multiprocessing.Pool(4) as pool:
        print(sum(pool.map(square, range(100))))
END
python3 pool.py
"""
WATCHER: Final = """
cat >watch.py <<'END'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init()
assert libc.inotify_add_watch(fd, b'.', 0x100) >= 0
open('ready', 'w').close()
print(os.read(fd, 4096)[16:].rstrip(bytes(1)).decode(), flush=True)
END
python3 watch.py
"""
GIT: Final = """
git add -A && git commit -qm second
git checkout -qb side && echo side >side.txt && git add side.txt && git commit -qm side
git checkout -q main && echo main >main.txt && git add main.txt && git commit -qm third
git checkout -q side && git rebase -q main
echo later >>a.txt && git stash -q && git stash pop -q && git checkout -q a.txt
git tag v1 && git log --oneline --graph | wc -l
git status --short | wc -l
"""
OTHER_REPOSITORY: Final = """
cd "$(mktemp -d)" && git init -q . && printf '#!/bin/sh\\necho hooked\\n' >.git/hooks/pre-commit
chmod +x .git/hooks/pre-commit && git commit -qm first --allow-empty && git rev-list --count HEAD
"""
DATABASE: Final = """
python3 -c "
import sqlite3
base = sqlite3.connect('it.db')
base.execute('pragma journal_mode=wal')
with base:
    base.execute('create table t (n)')
    base.executemany('insert into t values (?)', [(n,) for n in range(1000)])
print(base.execute('select sum(n) from t').fetchone()[0])
"
"""

JOBS: Final = (
    Job(name="tests with pytest in a venv", script=".venv/bin/python -m pytest -q", expected="1 passed", ready=_tested),
    Job(name="npm test", script="npm test", expected="all is well", ready=_node, uses=("npm",)),
    Job(name="git: commit, branch, rebase, stash", script=GIT, expected="4\n0\n", ready=repository, quick=True),
    Job(name="a repository of its own in /tmp", script=OTHER_REPOSITORY, expected="hooked\n1\n"),
    Job(
        name="a C program with make",
        script="make -s && ./it",
        expected="built",
        ready=_c,
        uses=("make", "cc"),
        quick=True,
    ),
    Job(name="a server, asked over loopback", script=SERVER, expected="served", quick=True),
    Job(name="names are found without a network", script="getent hosts localhost", expected="localhost"),
    Job(
        name="a file of 1 GB",
        script="head -c 1000000000 /dev/zero >big && stat -c %s big && rm big",
        expected="1000000000",
    ),
    Job(name="a pool of processes", script=POOL, expected="328350"),
    Job(name="a database", script=DATABASE, expected="499500"),
    Job(name="a watcher of files", script=WATCHER, expected="ready"),
    Job(
        name="temporary files, kept between commands of one run",
        script="mktemp -d >/dev/null && echo kept >/tmp/it && cat /tmp/it ${TMPDIR:-/tmp}/it | wc -l",
        expected="2",
    ),
    Job(name="names of all scripts", script="mkdir 文件 && echo é >'文件/ü ñ.txt' && cat 文件/*", expected="é"),
    Job(name="long output", script="seq 1000000 | tail -n 1; seq 300000", expected="300000\n"),
    Job(
        name="links, modes, times",
        script="echo a >f; ln f g; ln -s f h; chmod 755 f; touch -d @0 f; stat -c %Y%a g",
        expected="0755",
    ),
    Job(
        name="a home of its own", script="mkdir -p ~/.cache/it && echo x >~/.cache/it/a && ls ~/.cache/it", expected="a"
    ),
    Job(name="pipes, here-documents, arithmetic", script="cat <(echo one) - <<<two | wc -l", expected="2"),
    Job(name="time limits of its own", script="timeout 0.2 sleep 9 || echo $?", expected="124"),
)

PYTHON: Final = str(Path(sys.executable).parent)
