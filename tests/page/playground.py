"""A small shop, a scripted provider of one agent and of a team, and `greenroom serve` as a process of its own.

By hand: `python -m tests.page.playground FOLDER [PORT]` serves it until Ctrl-C.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from greenroom.testing import demo_run
from greenroom.testing.demo_run import Message, ScriptedProvider, ScriptedTurn
from greenroom.testing.demo_team import TURNS, TeamProvider, find_role

if TYPE_CHECKING:
    from playwright.sync_api import StorageState

SETTINGS: Final = """
model = "scripted:coder"
{more}
[providers.scripted]
base_url = "{address}"

[prices."scripted:coder"]
input = 3.0
output = 15.0
"""
TEAM_ROLES: Final = frozenset(TURNS)
LINK: Final = re.compile(r"http://127\.0\.0\.1:\d+/login\?code=[\w-]+")
PATIENCE_S: Final = 60.0


class PlaygroundProvider(TeamProvider):
    """Serves the turns of the demo's team, and those of its coder to an agent that works alone,
    or the turns of `script` if it is set."""

    def __init__(self, root: Path, pace: float = 0.0) -> None:
        super().__init__(pace, root)
        self.half_done.set()
        self.script: Sequence[ScriptedTurn] = ()
        self._coder = ScriptedProvider(pace)
        self._coder.half_done.set()

    def set_pace(self, seconds: float) -> None:
        """Wait this long before each reply."""
        self._pace = seconds

    async def choose_turn(self, messages: Sequence[Message], number: int) -> ScriptedTurn | None:
        """Return the next turn of the specialist, or of the coder."""
        role = find_role("\n".join(str(message.get("content")) for message in messages))
        if role in TEAM_ROLES:
            last = len(self._turns[role]) - 1  # whom a person writes to after its end ends once more
            return await super().choose_turn(messages, min(number, last))
        if self.script:
            return self.script[min(number, len(self.script) - 1)]
        return await self._coder.choose_turn(messages, number)


class Playground:
    """The folder of the person: the shop, the home and the settings. `link` logs in once: then `signed_in` keeps it."""

    def __init__(self, folder: Path, provider: PlaygroundProvider, address: str, *, settings: str = "") -> None:
        self.folder, self.provider = folder, provider
        self.root, self.home = folder / "shop", folder / "home"
        self._environment = {
            **demo_run.command_environment(),
            "GREENROOM_HOME": str(self.home),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "HOME": str(folder),
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        config = folder / "config" / "greenroom" / "config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(SETTINGS.format(address=address, more=settings), encoding="utf-8")
        self.root.mkdir(parents=True, exist_ok=True)
        demo_run.make_repository(self.root)
        self.process: subprocess.Popen[str] | None = None
        self.link = ""
        self.signed_in: StorageState | None = None

    @property
    def base_url(self) -> str:
        """The address of the page."""
        return self.link.partition("/login")[0]

    def serve(self, port: int = 0) -> None:
        """Start the server, and wait until it prints its link."""
        words = (sys.executable, "-m", "greenroom.cli", "serve", "--no-open", "--port", str(port))
        self.link = ""
        self.process = subprocess.Popen(
            words, cwd=self.root, env=self._environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        found, lines = threading.Event(), list[str]()

        def read() -> None:
            assert self.process is not None
            assert self.process.stderr is not None
            with self.process.stderr as stderr:
                for line in stderr:
                    lines.append(line)
                    if (match := LINK.search(line)) is not None:
                        self.link = match[0]
                        found.set()
            found.set()

        self._reader = threading.Thread(target=read, daemon=True)
        self._reader.start()
        assert found.wait(PATIENCE_S), lines
        assert self.link, "".join(lines)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of greenroom in the shop."""
        command = (sys.executable, "-m", "greenroom.cli", *words)
        return subprocess.run(
            command,
            cwd=self.root,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def ask(self, path: str, **body: object) -> dict[str, Any]:
        """Post to the API if there is a body, else read from it."""
        token = json.loads((self.home / "server" / "access.json").read_text("utf-8"))["token"]
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        data = json.dumps(body).encode() if body else None
        with urlopen(Request(f"{self.base_url}/api{path}", data, headers), timeout=PATIENCE_S) as answer:
            return cast("dict[str, Any]", json.load(answer))

    def wait_for_inbox(self, count: int, patience_s: float = PATIENCE_S) -> list[dict[str, Any]]:
        """Return what waits for the person as soon as it is so many things."""
        end = time.monotonic() + patience_s
        while len(items := self.ask("/inbox")["items"]) < count:
            assert time.monotonic() < end, items
            time.sleep(0.1)
        return cast("list[dict[str, Any]]", items)

    def wait_for_state(self, run: str, *states: str) -> None:
        """Wait until the run is in one of these states. What waits for the person meanwhile is allowed and accepted."""
        end = time.monotonic() + PATIENCE_S
        while self.ask(f"/runs/{run}")["state"] not in states:
            for item in self.ask("/inbox")["items"]:
                text = "accept" if item["kind"] == "conflict" else "yes"
                with suppress(HTTPError):  # it was answered meanwhile
                    self.ask(f"/runs/{item['run']}/inbox/{quote(item['id'], safe='')}", decision="approved", text=text)
            assert time.monotonic() < end, self.ask(f"/runs/{run}")
            time.sleep(0.2)

    def end(self, number: int = signal.SIGTERM) -> None:
        """End the server with a signal."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(PATIENCE_S)
            self._reader.join(PATIENCE_S)
            self.process = None


@contextmanager
def open_playground(folder: Path, *, pace: float = 0.0, settings: str = "") -> Iterator[Playground]:
    """Serve the script during the block, and end the server after it."""
    provider, loop = PlaygroundProvider(folder / "shop", pace), asyncio.new_event_loop()
    ready, over, addresses = threading.Event(), asyncio.Event(), list[str]()

    async def serve() -> None:
        server = await asyncio.start_server(provider.answer, "127.0.0.1", 0)
        addresses.append(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        ready.set()
        await over.wait()
        server.close()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert ready.wait(PATIENCE_S)
    playground = Playground(folder, provider, addresses[0], settings=settings)
    try:
        yield playground
    finally:
        playground.end(signal.SIGKILL)
        loop.call_soon_threadsafe(over.set)
        thread.join(PATIENCE_S)
        loop.close()


def main(arguments: Sequence[str]) -> None:
    """Serve a playground until Ctrl-C."""
    folder = Path(arguments[0]).resolve()
    with open_playground(folder, pace=0.4) as playground:
        playground.serve(int(arguments[1]) if len(arguments) > 1 else 0)
        print(playground.link, flush=True)
        assert playground.process is not None
        playground.process.wait()


if __name__ == "__main__":
    main(sys.argv[1:])
