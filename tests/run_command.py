"""A tool that runs a command in a process group of its own; a gate keeps the command waiting until it is let go."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

from greenroom.adapters.processes.plain import end_group, mark_group
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.state.step import Step, StepType, Terms
from greenroom.core.state.world import World

GATE = 'read -r _ && exec "$@" </dev/null'


async def start(command: Sequence[str]) -> asyncio.subprocess.Process:
    """Start a command as the leader of a session of its own; it does nothing until `let_go`."""
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
    """Effectful: a command in a process group of its own, which ends with the step, with us, or at recovery."""

    type: StepType = "tool"
    name: str = "run_command"
    description: str = "Run a program of this machine. For tests: there is no sandbox around it."

    def terms(self, _: World, __: Step) -> Terms:
        """At most once."""
        return Terms(effect="effectful")

    async def run(self, bench: Bench) -> Outcome:
        """Run the argument `command`, a list of words, and return what it printed."""
        words = (bench.step.work.instruction_content or {}).get("command")
        if not isinstance(words, list | tuple) or not words:
            raise WorldFault("run_command needs the argument 'command' as a list of words.")
        process = await start([str(word) for word in words])
        try:
            await bench.prepare(mark_group(process.pid))
            let_go(process)
            output, _ = await process.communicate()
        finally:
            await asyncio.shield(end_group(process.pid))
            await process.wait()
        text = output.decode(errors="replace")
        if process.returncode:
            return Outcome(state="failed", error=f"exit status {process.returncode}", result={"output": text})
        return Outcome(result={"output": text})
