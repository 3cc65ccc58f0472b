"""The tools that run commands, all that belong together."""

from __future__ import annotations

from greenroom.abilities.tools.commands.background import Background
from greenroom.abilities.tools.commands.execute_script import ExecuteScript
from greenroom.abilities.tools.commands.looking import CommandOutput, StopCommand
from greenroom.core.ports.commands import Commands
from greenroom.core.ports.tool import ToolExecutor


def command_tools(commands: Commands, background: Background | None = None) -> tuple[ToolExecutor, ...]:
    """`execute_script`, `command_output` and `stop_command`. Whoever made `commands` closes it when the run ends, and
    who has to end what runs in the `background` before that gives its own."""
    shared = background or Background(commands)
    return (ExecuteScript(commands, shared), CommandOutput(shared), StopCommand(shared))
