"""A person with a repository and work for an agent: the files, the scripted replies, and small readers."""

import hashlib
import os
import stat
import subprocess
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from tests.app.trust.yes import agree
from tests.e2e.provider import PRICED, Beside, provider, reached, settings
from tests.e2e.terminal import PATIENCE, Ended, greenroom
from tests.e2e.typing import Typing
from tests.fake_openai import Answer, Call
from tests.fake_openai.scripts import Script

EXPORT = "import csv\n\n\ndef export(rows, out):\n    csv.writer(out).writerows(rows)\n"
TESTS = """import io

from export import export


def test_csv():
    out = io.StringIO()
    export([[1, 2]], out)
    assert out.getvalue().strip() == "1,2"


def test_old():
    assert export is None, "it has always failed"
"""
WRONG = (
    "import csv\nimport json\n\n\ndef export(rows, out, as_json=False):\n    if as_json:\n        json.dump(row, out)\n"
)
WRONG += "    else:\n        csv.writer(out).writerows(rows)\n"
TEST = "import io\n\nfrom export import export\n\n\ndef test_json():\n    out = io.StringIO()\n"
TEST += '    export([[1]], out, as_json=True)\n    assert out.getvalue() == "[[1]]"\n'
PLUGINS = (
    "anyio",
    "asyncio",
    "benchmark",
    "hypothesispytest",
    "inline_snapshot",
    "timeout",
    "xdist",
    "xdist.looponfail",
)
ALONE = " ".join(f"-p no:{name}" for name in PLUGINS)
"""Disable our own plugins, which take a second to load."""

ASKED = "add json to export, with tests"
PERSON = {"GIT_AUTHOR_NAME": "Pia", "GIT_AUTHOR_EMAIL": "pia@example.org"}
PERSON |= {"GIT_COMMITTER_NAME": "Pia", "GIT_COMMITTER_EMAIL": "pia@example.org"}


def git(repo: Path, *words: str, code: int = 0) -> str:
    """Run git, check its exit code, and return its output."""
    env = {**os.environ, **PERSON, "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(["git", *words], cwd=repo, env=env, check=False, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout


def founded(repo: Path) -> Path:
    """Make a repository with a failing test and an uncommitted file."""
    repo.mkdir(parents=True)
    (repo / "export.py").write_text(EXPORT)
    (repo / "test_export.py").write_text(TESTS)
    (repo / "pyproject.toml").write_text(f"[tool.pytest.ini_options]\naddopts = '-q {ALONE}'\n")
    committed(repo)
    (repo / "notes.txt").write_text("mine\n")
    return repo


def committed(repo: Path) -> None:
    """Commit everything as the first commit."""
    git(repo, "init", "--quiet", "--initial-branch=main")
    git(repo, "config", "core.autocrlf", "false")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message=first")


def exactly(root: Path) -> dict[str, str]:
    """Return every file, folder and link exactly; for a repository also its index, HEAD and status."""
    found = {str(one.relative_to(root)): _told(one) for one in sorted(root.rglob("*")) if ".git" not in one.parts}
    if (root / ".git").exists():
        told = (
            ("symbolic-ref", "-q", "HEAD"),
            ("status", "--porcelain=v2", "--untracked-files=all"),
            ("ls-files", "-sv"),
            ("rev-parse", "-q", "--verify", "HEAD"),
        )
        for words in told:
            done = subprocess.run(["git", *words], cwd=root, check=False, capture_output=True, text=True)
            found[f"git {words[0]}"] = done.stdout
        found["MERGE_HEAD"] = str((root / ".git" / "MERGE_HEAD").exists())
    return found


def _told(path: Path) -> str:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return f"-> {path.readlink()}"
    content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(mode) else ""
    return f"{stat.filemode(mode)} {content}"


def call(name: str, number: int, *, says: str = "", **given: object) -> Answer:
    """Build a reply that calls one tool."""
    return Answer(text=says, calls=(Call(name=name, arguments=given, id=f"c{number}"),))


def done(summary: str, number: int = 99) -> Answer:
    """Build a reply that ends the work."""
    return call("finish", number, status="done", summary=summary)


def honest() -> Sequence[Answer]:
    """Return replies that make a typo, read the failure, and fix it."""
    edit = {"search": "json.dump(row,", "replace": "json.dump(rows,"}
    return (
        call("read_code", 1, file="export.py"),
        call("propose_plan", 2, steps=["Add as_json", "Test it"], files=["export.py", "test_json.py"]),
        call("rewrite", 3, file="export.py", content=WRONG),
        call("rewrite", 4, file="test_json.py", content=TEST),
        done("It is done.", 98),
        call("patch", 5, says="A letter is missing.", file="export.py", edits=[edit]),
        done("`export.py` writes JSON now; `test_json.py` shows it."),
    )


class Turns:
    """A model that answers by the length of the conversation, so that a repeated request gets the same reply. A turn in
    `held` waits for `let`."""

    def __init__(self, replies: Sequence[Answer], held: Sequence[int] = ()) -> None:
        self._replies = replies
        self._gates = {turn: threading.Event() for turn in held}
        self.asked: list[str] = []

    def __call__(self, body: dict[str, object], _: int) -> Answer:
        """The next reply."""
        messages = body["messages"]
        assert isinstance(messages, list)
        turn = sum(one["role"] == "assistant" for one in messages)
        self.asked.append(str(messages[-1]["content"]))
        if turn in self._gates:
            assert self._gates[turn].wait(PATIENCE), f"nobody let turn {turn} go"
        reply: Answer = self._replies[min(turn, len(self._replies) - 1)]
        return reply

    def let(self, turn: int) -> None:
        """Release a held turn."""
        self._gates[turn].set()


class Desk:
    """A person in their repository."""

    def __init__(self, home: Path, repo: Path) -> None:
        self.home, self.repo = home, repo
        self.own = {"GREENROOM_SANDBOX": "auto", "GIT_CONFIG_GLOBAL": os.devnull, **PERSON}

    def types(self, *words: str, **more: str) -> Ended:
        """Run a command in that folder."""
        return greenroom(self.home, *words, cwd=str(self.repo), **{**self.own, **more})

    def asks(self, *replies: Answer, words: Sequence[str] = ("--yes",)) -> Ended:
        """Run a task with a model that gives these replies."""
        with self.model(*replies) as fake:
            return self.types("run", ASKED, *words, **reached(fake))

    def model(self, *replies: Answer) -> AbstractContextManager[Beside]:
        """Serve a model that gives these replies."""
        return provider(Turns(replies))

    def sits(self, fake: Beside, *words: str, columns: str = "100", also: str = "", **more: str) -> Typing:
        """Run a command at a terminal, with a priced model and optional settings."""
        settings(self.home, f"{PRICED}{also}")
        return Typing(self.home, *words, columns=columns, cwd=str(self.repo), **{**self.own, **reached(fake), **more})


CHECK = "import sys\n\nsys.exit(0 if 'good' in open('app.txt').read() else 1)\n"
SETTINGS = '[checks.quick]\nrun = "python3 check.py"\n'
"""Settings in the person's own file, which need no confirmation."""


def turns(word: str, number: int = 1) -> Answer:
    """Build a reply that replaces `good` with another word."""
    return call("patch", number, file="app.txt", edits=[{"search": "good", "replace": word}])


class Workshop:
    """`home` is the person's home, `repo` their repository."""

    def __init__(self, folder: Path, own: str = SETTINGS, **files: str) -> None:
        self.home, self.repo = folder / "home", folder / "repo"
        settings(self.home, own)
        for name, text in {"app.txt": "good\n", "check.py": CHECK, **files}.items():
            self.puts(name, text)
        committed(self.repo)

    def puts(self, name: str, text: str) -> None:
        """Write a file."""
        path = self.repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def reads(self, name: str = "app.txt") -> str:
        """Read a file."""
        return (self.repo / name).read_text()

    def trusts(self) -> None:
        """Trust the repository."""
        agree(self.home / "config", self.repo)

    def types(self, *words: str, stdin: str | None = None, **more: str) -> Ended:
        """Run a command without a terminal."""
        around = {"GREENROOM_SANDBOX": "auto", **PERSON, **more}
        return greenroom(self.home, *words, stdin=stdin, cwd=str(self.repo), **around)

    def runs(self, replies: Script, *words: str, stdin: str | None = None, **more: str) -> Ended:
        """Run a task with these replies."""
        with provider(replies) as fake:
            return self.types("run", *words, stdin=stdin, **reached(fake), **more)


def hook(repo: Path, name: str, script: str) -> None:
    """Write a hook of the person."""
    path = repo / ".git" / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
