"""Jarvis' way to act on a reply: a list of output handlers, of which the one that can handle it does.

    async with Greenroom(workspace=".") as house:
        handlers = handlers_of(house, agent)        what the agent's forms can do: TOOL_CALL, PATCH, REWRITE
        need_return, tool_prompt = await execute_tool_call(response, [*handlers, MyHandler()])

It is for programs with a loop of their own. What a handler of the house does is a run in the log like any other, under
the same policy; `Agent.run` has all of it in one.
"""

from greenroom.app.designs.jarvis.execute import OutputHandler, execute_tool_call
from greenroom.app.designs.jarvis.handlers import FormHandler, handlers_of

__all__ = ["FormHandler", "OutputHandler", "execute_tool_call", "handlers_of"]
