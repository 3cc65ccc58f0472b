"""`execute_script`: run a script, read what it printed and how it ended."""

from __future__ import annotations

from typing import Final

from greenroom.abilities.tools.commands.asking import DESCRIPTION, SCHEMA, Script
from greenroom.abilities.tools.commands.background import Background
from greenroom.abilities.tools.commands.hearing import heard
from greenroom.abilities.tools.commands.kept import Kept
from greenroom.abilities.tools.commands.live import LiveLines
from greenroom.abilities.tools.commands.telling import cancelled, outcome
from greenroom.abilities.tools.output.given import fitted, given
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data
from greenroom.core.ports.commands import Commands
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World

NAME: Final = "execute_script"


class ExecuteScript:
    """Effectful: nobody knows what a script does, so it is run at most once."""

    type: StepType = "tool"
    name: str = NAME
    description: str = DESCRIPTION

    def __init__(self, commands: Commands, background: Background) -> None:
        self._commands = commands
        self._background = background
        # It has its own limit of time, so the card has none.
        spec = ToolSpec(name=self.name, description=self.description, parameters=SCHEMA)
        self.card = ToolCard(spec=spec, group="command", effect="effectful")

    def targets(self, arguments: Data) -> tuple[Target, ...]:
        """The command line, and the hosts that it wants to reach."""
        try:
            script = fitted(Script, arguments, self.name)
        except ModelFault:
            return (Target(kind="tool", value=self.name),)
        hosts = dict.fromkeys(one.lower() for one in script.hosts)
        return (Target(kind="command", value=script.line), *(Target(kind="host", value=one) for one in hosts))

    def terms(self, _: World, __: Step) -> Terms:
        """At most once. Whether at all is the policy's word."""
        return Terms(effect="effectful")

    async def run(self, bench: Bench) -> Outcome:
        """Run it to its end, or begin it in the background."""
        script = given(Script, bench.step)
        if script.background:
            return await self._background.begin(bench, script)
        kept, handle = Kept(), bench.step.step_id
        bench.leave(lambda: cancelled(kept, handle))
        ended = await heard(self._commands.run(script.command), bench.prepare, kept, LiveLines(bench.show))
        return outcome(ended, kept, seconds=script.seconds, handle=handle)
