"""`[workspace] setup`: the command that runs in a new worktree before its checks, such as an install."""

from __future__ import annotations

from typing import Final

from greenroom.abilities.skills.talk.own import ended
from greenroom.abilities.tools.command_output import Kept, LiveLines, heard
from greenroom.abilities.tools.tool import CardedTool
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, record
from greenroom.core.ports.checks import Witness
from greenroom.core.ports.commands import Command, Commands, Ended
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard

NAME: Final = "prepare"
SPEC: Final = ToolSpec(
    name=NAME,
    description="Run what the project needs before anything else in a new copy. The house does that once.",
    parameters={"type": "object", "properties": {}},
)
BEGINNING: Final = 4_000
END: Final = 16_000
"""Characters of what it prints that are kept; why it failed stands at the end."""

TOLD: Final = 1_500
"""Characters of that end in the sentence that a person reads."""


@record
class Setup:
    """The command `line` of `[workspace] setup`, which has so many `seconds`; empty where there is none. `left` says
    why it is not run. `lend` are folders that git ignores and that are lent on top of the usual ones."""

    line: str = ""
    seconds: float = 600.0
    lend: tuple[str, ...] = ()
    left: str = ""

    @property
    def runs(self) -> bool:
        """Whether a copy is prepared at all."""
        return bool(self.line) and not self.left


@record
class Preparation:
    """What came of it: `why` it failed, empty where it did not, and what it `printed`."""

    why: str = ""
    printed: str = ""


async def prepared(setup: Setup, commands: Commands, witness: Witness) -> Preparation:
    """Run the line where these commands run."""
    kept = Kept(BEGINNING, END)
    command = Command(words=("sh", "-c", setup.line), seconds=setup.seconds, env={"CI": "1"})
    try:
        end = await heard(commands.run(command), witness.prepare, kept, LiveLines(witness.show))
    except WorldFault as fault:
        return Preparation(why=f"it cannot begin: {fault}")
    well = end.how == "exited" and end.code == 0
    return Preparation(why="" if well else _how(end, setup.seconds), printed=kept.text)


class Prepare(CardedTool):
    """Keyed: one that was cut off is run again. What it makes stays in the copy, for every later command."""

    def __init__(self, setup: Setup, commands: Commands) -> None:
        self.card = ToolCard(spec=SPEC, group="command", effect="keyed")
        self._setup = setup
        self._commands = commands

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Nothing that anybody has to be asked about: it is the person's own line, or it is run behind walls."""
        return ()

    async def run(self, bench: Bench) -> Outcome:
        """Run it. Without it no check can be believed, so a failure ends the job before anything is spent."""
        if self._setup.left:
            return Outcome(result={"output": self._setup.left})
        done = await prepared(self._setup, self._commands, bench)
        if done.why:
            return self._failed(bench, done.why, done.printed)
        told = f"Prepared with `{self._setup.line}`."
        return Outcome(result={"output": told, "exit": 0, "printed": done.printed})

    def _failed(self, bench: Bench, why: str, printed: str) -> Outcome:
        end = f"\n{printed[-TOLD:].strip()}" if printed.strip() else ""
        said = f"`{self._setup.line}` ([workspace] setup) failed: {why}. Nothing was begun.{end}"
        return Outcome(result={"output": said, "printed": printed}, intents=(ended(bench.step, said, failed=True),))


def _how(end: Ended, seconds: float) -> str:
    match end.how:
        case "exited":
            return f"exit code {end.code}"
        case "timed_out":
            return f"it took longer than {seconds:g} s"
        case "signalled":
            return f"it was ended by signal {end.signal}"
        case _:
            return "it was stopped"
