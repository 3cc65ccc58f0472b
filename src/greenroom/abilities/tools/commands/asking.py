"""What `execute_script` is asked with, and the command line that it comes to."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from greenroom.core.base.records import Data
from greenroom.core.ports.commands import Command

SECONDS: Final = 120
LONGEST: Final = 3600
HOSTS: Final = 8
REASON: Final = 1_000

Interpreter: TypeAlias = Literal["bash", "sh", "python3", "node"]
FLAGS: Final[Mapping[Interpreter, str]] = {"bash": "-c", "sh": "-c", "python3": "-c", "node": "-e"}
SHELLS: Final = frozenset({"bash", "sh"})


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call's arguments."""

    script: Annotated[str, msgspec.Meta(min_length=1)]
    interpreter: Interpreter = "bash"
    cwd: str = "."
    timeout_seconds: Annotated[int, msgspec.Meta(ge=1, le=LONGEST)] | None = None
    background: bool = False
    hosts: Annotated[tuple[str, ...], msgspec.Meta(max_length=HOSTS)] = ()
    why: Annotated[str, msgspec.Meta(max_length=REASON)] = ""

    @property
    def seconds(self) -> int:
        """How long it may take."""
        return self.timeout_seconds or (LONGEST if self.background else SECONDS)

    @property
    def command(self) -> Command:
        """The command that it is."""
        return Command(words=self.words, folder=self.cwd, seconds=self.seconds, hosts=self.hosts)

    @property
    def words(self) -> tuple[str, ...]:
        """A program and its arguments."""
        return (self.interpreter, FLAGS[self.interpreter], self.script)

    @property
    def line(self) -> str:
        """What a rule about commands is asked about. Only a shell's script is a command line by itself."""
        line = self.script if self.interpreter in SHELLS else shlex.join(self.words)
        return line if self.cwd in ("", ".") else f"cd {shlex.quote(self.cwd)} && {line}"


SCHEMA: Final[Data] = {
    "type": "object",
    "properties": {
        "script": {"type": "string", "minLength": 1, "description": "What to run: a script of any length of lines."},
        "interpreter": {"enum": list(FLAGS), "description": "What runs it; bash if left out."},
        "cwd": {"type": "string", "description": "Folder inside the workspace to start in; its root if left out."},
        "timeout_seconds": {
            "type": "integer",
            "minimum": 1,
            "maximum": LONGEST,
            "description": f"When it is ended; {SECONDS} if left out, {LONGEST} in the background.",
        },
        "background": {
            "type": "boolean",
            "description": "Do not wait for its end: for servers and watchers. You get a handle for command_output.",
        },
        "hosts": {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": HOSTS,
            "description": "Hosts it has to reach over the network; a person may be asked. Names only, no addresses "
            "of pages, no patterns.",
        },
        "why": {"type": "string", "maxLength": REASON, "description": "With hosts: what for, in one sentence."},
    },
    "required": ["script"],
    "additionalProperties": False,
}
"""The same as a model is told of it."""

DESCRIPTION: Final = """\
Run a script in the workspace: tests, linters, type checks, builds, version control.
Nobody can answer it: stdin is empty, there is no pager and no editor, so pass flags like --yes. When it ends, every \
process that it began ends too.
Keep what it prints short: filter it (rg, grep, tail, -q); of long output you see the first and last 30 lines and a \
handle for read_output.
Run static checks once, after all edits of a change, not after each of them.
Not for reading, searching or editing files, which have tools of their own, and not to wait (sleep).
Without the network, unless you name the hosts: {"script": "pip install x", "hosts": ["pypi.org", \
"files.pythonhosted.org"], "why": "The tests need it."}
A program that goes on running (a server, a watcher) needs background=true.
Example: {"script": "pytest -q tests/parser 2>&1 | tail -n 40", "timeout_seconds": 300}"""
