"""Play a change of a project through the command line and read what came of it."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.projects.model import serve
from tests.projects.project import Change
from tests.projects.setup import PATIENCE, PERSON

GREENROOM = (sys.executable, "-m", "greenroom.cli")
OURS = Path(sys.executable).parent
"""The linters of our own environment are not this person's."""

PASSED_ON = ("LANG", "LC_ALL", "TERM", "PYENV_ROOT", "NVM_DIR")
TOOLS = {"CARGO_HOME": ".cargo", "RUSTUP_HOME": ".rustup"}
"""Where Rust's programs look for themselves: this person has another home than the machine's user."""


@dataclass(frozen=True)
class Played:
    """How a run ended.

    `verdict` is the word in `show`, else in the log; `checks` are those that were found, with a `!` before the ones
    that could not run on the base; `reasons` is why it is not verified; `printed` is all that the person saw.
    """

    code: int
    seconds: float
    verdict: str
    checks: tuple[str, ...]
    reasons: tuple[str, ...]
    printed: str


class Person:
    """A user with a home of their own, in which their projects lie."""

    def __init__(self, home: Path) -> None:
        self.home = home
        own = {"HOME": "", "XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "config", "XDG_CACHE_HOME": "cache"}
        tools = {name: os.environ.get(name, str(Path.home() / folder)) for name, folder in TOOLS.items()}
        self._environment = {
            **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
            **{name: path for name, path in tools.items() if Path(path).is_dir()},
            **{name: str(home / folder) for name, folder in own.items()},
            **PERSON,
            "PATH": os.pathsep.join(folder for folder in os.get_exec_path() if Path(folder) != OURS),
            "GREENROOM_SANDBOX": "auto",
        }

    def type(self, folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command of Greenroom in this folder to its end."""
        return subprocess.run(
            [*GREENROOM, *words],
            cwd=folder,
            env={**self._environment, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def find_tier(self, folder: Path) -> str:
        """Return the tier of the sandbox here: `bubblewrap`, `landlock`, `seatbelt` or `none`."""
        report = json.loads(self.type(folder, "doctor", "--output-format", "json").stdout)
        found = next(str(finding["found"]) for finding in report["findings"] if finding["what"] == "sandbox")
        named = re.search("bubblewrap|landlock|seatbelt", found.split(" (")[0].lower())
        return named[0] if named else "none"

    def play(self, folder: Path, change: Change) -> Played:
        """Ask for the change as a user does who answers every question with yes."""
        with serve(change) as reached:
            began = time.monotonic()
            ended = self.type(folder, "run", change.request, "--yes", **reached)
            seconds = time.monotonic() - began
        shown = _read_lines(self.type(folder, "show", "last", "--output-format", "json").stdout)
        events = _read_lines(self.type(folder, "events", "last", "--output-format", "stream-json").stdout)
        verdict: Any = next(_find(shown, "verdict"), None) or next(_find(reversed(events), "verdict"), {})
        said = verdict if isinstance(verdict, dict) else {"state": verdict}
        report: Any = next(_find(events, "report"), {})
        return Played(
            code=ended.returncode,
            seconds=seconds,
            verdict=str(said.get("state") or "none"),
            checks=tuple(_name_check(check) for check in report.get("checks", ())),
            reasons=tuple(said.get("missing") or said.get("reasons") or ()),
            printed=ended.stdout + ended.stderr,
        )


def _read_lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def _find(data: Any, key: str) -> Iterator[Any]:
    """Yield what stands under this key, wherever it is, but not a policy's verdict on a call."""
    if isinstance(data, dict):
        if key in data and data[key] not in ("allow", "notify", "ask", "deny"):
            yield data[key]
        data = data.values()
    elif isinstance(data, str | bytes) or not isinstance(data, Iterable):
        return
    for part in data:
        yield from _find(part, key)


def _name_check(check: Mapping[str, str]) -> str:
    return f"{'!' if check['outcome'] == 'could_not_run' else ''}{check['check']}"
