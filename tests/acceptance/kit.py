"""Shared parts of the acceptance tests: a person with a home and a repository, a scripted model, and small readers.

Everything uses public interfaces: the command, the public library names, git and files. Only this module of the folder
imports the fake model server.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self, TypeAlias

from tests import fake_openai
from tests.acceptance.process import TIMEOUT_S, Ended, Process

Answer: TypeAlias = fake_openai.Answer
Script: TypeAlias = fake_openai.Script

KEY = "sk-test-0123456789abcdef"
JSON = ("--output-format", "json")
VERIFIED, FAILED, USAGE, STORE, LIMIT, WAITING, UNVERIFIED = 0, 1, 2, 3, 5, 6, 7
"""Exit codes."""

ALONE = ("--non-interactive", *JSON)
PERSON = {"GIT_AUTHOR_NAME": "Pia", "GIT_AUTHOR_EMAIL": "pia@example.org"}
PERSON |= {"GIT_COMMITTER_NAME": "Pia", "GIT_COMMITTER_EMAIL": "pia@example.org"}
UNREACHABLE = "http://127.0.0.1:9/v1"
SERVERS = ("OLLAMA_HOST", "LMSTUDIO_BASE_URL", "LLAMACPP_BASE_URL", "VLLM_BASE_URL")
DROPPED = ("CI", "NO_COLOR", "FORCE_COLOR", "GREENROOM_CONFIG", "GREENROOM_MODEL", "GREENROOM_MAX_COST")
SECRET = ("_KEY", "_TOKEN", "_BASE_URL")
PRICES = '[prices."openai:gpt-5.5"]\ninput = 1.0\noutput = 10.0\n'
CHECK = "import sys\n\nsys.exit(0 if 'good' in open('app.txt').read() else 1)\n"
SETTINGS = f'{PRICES}[checks.unit]\nrun = "python3 check.py"\nkind = "test"\n'
ALLOWED = "allow command python3 check.py\nallow command python3 -m pytest\nallow command python3 -m unittest\n"
PLUGINS = ("anyio", "asyncio", "hypothesispytest", "inline_snapshot", "timeout", "xdist", "xdist.looponfail")
PYTEST = f"[tool.pytest.ini_options]\naddopts = '-q {' '.join(f'-p no:{name}' for name in PLUGINS)}'\n"
APP = "def total(prices):\n    return sum(prices)\n"
TEST = "from app import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"


class Beside(fake_openai.FakeOpenAI):
    """A fake model server in another thread."""

    def __init__(self, script: Script) -> None:
        super().__init__(script, api_key=KEY)
        self.loop = asyncio.new_event_loop()

    def wait_for(self, in_flight: int) -> None:
        """Wait until this many requests are being served."""
        asyncio.run_coroutine_threadsafe(self.until(in_flight), self.loop).result(TIMEOUT_S)

    @property
    def heard(self) -> str:
        """Return everything that was sent to the model."""
        return "".join(request.raw.decode() for request in self.requests)

    @property
    def reach(self) -> dict[str, str]:
        """The environment variables that lead to this server."""
        return {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": self.base_url}


@contextmanager
def serve_model(script: Script) -> Iterator[Beside]:
    """Serve a script while the block runs."""
    server, ready, over = Beside(script), threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with server:
            ready.set()
            await over.wait()

    thread = threading.Thread(target=server.loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    try:
        assert ready.wait(TIMEOUT_S)
        yield server
    finally:
        server.loop.call_soon_threadsafe(over.set)
        thread.join(TIMEOUT_S)
        server.loop.close()


class Turns:
    """A model that answers by the length of the conversation: a repeated request gets the same reply.

    `hold` is a turn at which it waits until `release` is called.
    """

    def __init__(self, *replies: Answer, hold: int = -1) -> None:
        self._replies, self._hold, self._gate = replies, hold, threading.Event()

    def __call__(self, body: dict[str, object], _: int) -> Answer:
        messages = body["messages"]
        assert isinstance(messages, list)
        turn = sum(message["role"] == "assistant" for message in messages)
        if turn == self._hold:
            assert self._gate.wait(TIMEOUT_S)
        reply: Answer = self._replies[min(turn, len(self._replies) - 1)]
        return reply

    def release(self) -> None:
        """Let the held turn go on."""
        self._gate.set()


def say(text: str) -> Answer:
    """A reply in words."""
    return Answer(text=text)


def call(name: str, number: int = 1, **arguments: object) -> Answer:
    """A reply that calls a tool."""
    return Answer(calls=(fake_openai.Call(name=name, arguments=arguments, id=f"c{number}"),))


def call_together(*calls: tuple[str, Mapping[str, object]]) -> Answer:
    """A reply that calls several tools at once."""
    return Answer(
        calls=tuple(fake_openai.Call(name=name, arguments=given, id=f"m{at}") for at, (name, given) in enumerate(calls))
    )


PLAN = call("propose_plan", 9, steps=["Do it"], files=["app.txt"])


def write(file: str, content: str, number: int = 1) -> Answer:
    """A reply that writes a whole file."""
    return call("rewrite", number, file=file, content=content)


def replace(search: str, new: str, file: str = "app.txt", number: int = 1) -> Answer:
    """A reply that replaces text in a file."""
    return call("patch", number, file=file, edits=[{"search": search, "replace": new}])


FINISH = call("finish", 98, status="done", summary="Done.", files=[], tests=[])
GOOD = (PLAN, replace("good", "good, red"), FINISH)
BAD = (PLAN, replace("good", "bad"), *(say("I could not."),) * 4)


def git(repo: Path, *words: str) -> str:
    """What git prints in a repository."""
    env = {**os.environ, **PERSON, "GIT_CONFIG_GLOBAL": os.devnull}
    return subprocess.run(["git", *words], cwd=repo, env=env, check=True, capture_output=True, text=True).stdout


def snapshot(repo: Path) -> dict[str, str]:
    """Every file of a person's repository by its hash, HEAD, and what git thinks of them."""
    files = (path for path in sorted(repo.rglob("*")) if ".git" not in path.parts and path.is_file())
    found = {str(path.relative_to(repo)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    status = git(repo, "status", "--porcelain=v2", "--untracked-files=all")
    return {**found, "HEAD": git(repo, "rev-parse", "HEAD"), "branch": git(repo, "branch"), "status": status}


def surroundings(home: Path, **more: str) -> dict[str, str]:
    """The environment of a command: no keys and no model server of the developer's shell."""
    kept = {name: value for name, value in os.environ.items() if name not in DROPPED and not name.endswith(SECRET)}
    own = {"GREENROOM_HOME": str(home), "XDG_CONFIG_HOME": str(home / "config"), "XDG_CACHE_HOME": str(home / "cache")}
    quick = {"SSL_CERT_FILE": os.devnull, "SSL_CERT_DIR": os.devnull, "GIT_CONFIG_GLOBAL": os.devnull}
    return {**kept, **own, **dict.fromkeys(SERVERS, UNREACHABLE), **quick, **PERSON, "COLUMNS": "120", **more}


def rows(found: object) -> list[dict[str, object]]:
    """A list of objects."""
    assert isinstance(found, list)
    return found


def fields(found: object) -> dict[str, object]:
    """An object."""
    assert isinstance(found, dict)
    return found


class Desk:
    """A person: `home` holds their log and settings, `repo` is their repository on branch main."""

    def __init__(self, folder: Path, own: str = SETTINGS, *, files: Mapping[str, str] | None = None) -> None:
        self.home, self.repo = folder / "home", folder / "repo"
        self.set(own)
        self.repo.mkdir(parents=True)
        given = {"app.txt": "good\n", "check.py": CHECK} if files is None else files
        for name, text in given.items():
            self.put(name, text)
        git(self.repo, "init", "--quiet", "--initial-branch=main")
        self.commit("first")

    @classmethod
    def at(cls, folder: Path) -> Self:
        """The person whose home and repository are there already."""
        desk = cls.__new__(cls)
        desk.home, desk.repo = folder / "home", folder / "repo"
        return desk

    def set(self, text: str) -> None:
        """Write the person's settings."""
        path = self.home / "config" / "greenroom" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        (path.parent / "permissions").write_text(ALLOWED)

    def put(self, name: str, text: str) -> None:
        """Write a file of the person's."""
        path = self.repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def read(self, name: str = "app.txt") -> str:
        """Read a file of the person's."""
        return (self.repo / name).read_text()

    def commit(self, message: str) -> None:
        """Commit all that is there."""
        git(self.repo, "add", "--all")
        git(self.repo, "commit", "--quiet", "--allow-empty", f"--message={message}")

    def start(self, *words: str, stdin: str | None = None, **more: str) -> Process:
        """Begin a command in the repository."""
        return Process(words, surroundings(self.home, **more), self.repo, stdin)

    def type(self, *words: str, stdin: str | None = None, **more: str) -> Ended:
        """Run a command in the repository to its end."""
        return self.start(*words, stdin=stdin, **more).end()

    def run(self, *replies: Answer, words: Sequence[str] = ALONE, text: str = "Paint it.", **more: str) -> Ended:
        """Run a task with a model that gives these replies."""
        with serve_model(Turns(*replies)) as server:
            return self.type("run", text, *words, **{**server.reach, **more})

    def work(self, *replies: Answer, words: Sequence[str] = (), text: str = "Paint it.", **more: str) -> Ended:
        """Run a task and answer yes to every question, as a person does where no sandbox confines commands."""
        with serve_model(Turns(*replies)) as server:
            return self.answer_all(
                self.type("run", text, "--yes", *JSON, *words, **{**server.reach, **more}),
                *words,
                **{**server.reach, **more},
            )

    def answer_all(self, ended: Ended, *words: str, **more: str) -> Ended:
        """Say yes and resume until nothing waits."""
        wishes = tuple(word for at, word in enumerate(words) if "--branch" in words[max(at - 1, 0) : at + 1])
        wishes += ("--apply",) if "--apply" in words else ()
        for _ in range(4):
            if ended.code != WAITING:
                break
            run = str(ended.json["team"])
            answered = self.type("answer", run, "yes", "--for", "run", *JSON)
            assert answered.code == 0, answered.err
            ended = self.type("resume", run, *JSON, *wishes, **more)
        return ended

    def events(self, run: str = "last") -> list[dict[str, object]]:
        """The log of a run."""
        ended = self.type("events", run, "--output-format", "stream-json")
        assert ended.code == 0, ended.err
        return ended.lines

    def show(self, run: str = "last") -> dict[str, object]:
        """What `show` says of a run."""
        ended = self.type("show", run, *JSON)
        assert ended.code == 0, ended.err
        return ended.json

    def kept(self) -> bytes:
        """Every byte below the home, but for the worktrees, which hold the person's own files."""
        files = (path for path in sorted(self.home.rglob("*")) if path.is_file() and "cache" not in path.parts)
        return b"".join(path.read_bytes() for path in files)


def wait_until(true: Callable[[], bool]) -> None:
    """Wait for something that another thread does."""
    pause = threading.Event()
    for _ in range(int(TIMEOUT_S * 100)):
        if true():
            return
        pause.wait(0.01)
    raise AssertionError("it did not happen in time")
