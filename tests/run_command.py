"""A tool that runs a command in its own process group. A gate holds the command until it is released."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

from greenroom.adapters.processes.local_commands import end_group, mark_group
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.state.step import Step, StepTerms, StepType
from greenroom.core.state.team_state import TeamState

GATE = 'read -r _ && exec "$@" </dev/null'


async def start(command: Sequence[str]) -> asyncio.subprocess.Process:
    """Start a command as the leader of its own session. It does nothing until `let_go`."""
    return await asyncio.create_subprocess_exec(
        *("/bin/sh", "-c", GATE, "sh", *command),
        env={"PATH": os.defpath},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )


def let_go(process: asyncio.subprocess.Process) -> None:
    """Open the gate: the command runs."""
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    process.stdin.close()


class RunCommand:
    """Effectful: a command in its own process group, which ends with the step, with this process, or at recovery."""

    type: StepType = "tool"
    name: str = "run_command"
    description: str = "Run a program of this machine. For tests: there is no sandbox around it."

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        """Return effectful terms."""
        return StepTerms(effect="effectful")

    async def run(self, context: StepContext) -> Outcome:
        """Run the argument `command`, a list of words, and return its output."""
        words = (context.step.work.instruction_content or {}).get("command")
        if not isinstance(words, list | tuple) or not words:
            raise WorldFault("run_command needs the argument 'command' as a list of words.")
        process = await start([str(word) for word in words])
        try:
            await context.prepare(mark_group(process.pid))
            let_go(process)
            output, _ = await process.communicate()
        finally:
            await asyncio.shield(end_group(process.pid))
            await process.wait()
        text = output.decode(errors="replace")
        if process.returncode:
            return Outcome(state="failed", error=f"exit status {process.returncode}", result={"output": text})
        return Outcome(result={"output": text})
