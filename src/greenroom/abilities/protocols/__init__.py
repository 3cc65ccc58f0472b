"""How we ask for calls in text, and how we read them: five protocols, each a prompt and a parser.

    name            a block                                                     becomes a call of
    tool_call       <TOOL_CALL> JSON: name, arguments </TOOL_CALL>              that tool
    xml_tool        <tool_call><name>…</name><params>…</params></tool_call>     that tool, or call_subagent
    send_message    <SEND_MESSAGE> YAML: to, content </SEND_MESSAGE>            send_message: receiver, message, handoff
    patch           <PATCH file="…"> DIFF, SEARCH, REPLACE … </PATCH>           patch: file, edits
    rewrite         <REWRITE file="…"> content </REWRITE>                       rewrite: file, content

    prompt(["tool_call", "patch"], tools=tools)         what the model is told
    read(reply, ["tool_call", "patch"], tools=tools)    Nothing | Acts | NotRun

A block is run only if all of this holds. Otherwise `NotRun` tells the model why, with a block to send instead if one
can be given without a guess; or `Nothing.hint` tells it that what it wrote is no block:

- Its opening tag begins a line, or follows reasoning, and nothing follows its end tag on that line (`blocks`).
- It is not in reasoning, in fenced or inline code, or in an element that is not ours. A block in a code fence is not
  run, not even when it is all there is.
- Nothing behind it can belong to it: its end tag once more, or a code fence that is never closed.
- It is the only one (`policy="reject"`), or the first one, the others being reported (`policy="first"`).
- It is whole. JSON and parameters show their own end, so their end tag may be missing. YAML does not: a message without
  its end tag is taken only if the model is known to have stopped by itself (`ended`), a tool call only if it has no
  side effects besides. What was cut off is never run and never offered again, and edits are never completed. Of a reply
  that the provider cut off (`ended=False`) nothing with side effects is run at all.
- It is exactly what the tool's schema wants. What had to be mended first (`jsons`: only what has one meaning) is run
  only for tools without side effects (`pure`).

Texts stay what they are, byte for byte: nothing is unescaped, and only the line breaks next to the tags belong to them.
"""

from greenroom.abilities.protocols.jsons import flaw
from greenroom.abilities.protocols.outcome import Acts, Nothing, NotRun, Policy, ProtocolName, Read
from greenroom.abilities.protocols.reading import MessageHandler, prompt, read, write
from greenroom.abilities.protocols.xml_tool import routing

__all__ = [
    "Acts",
    "MessageHandler",
    "NotRun",
    "Nothing",
    "Policy",
    "ProtocolName",
    "Read",
    "flaw",
    "prompt",
    "read",
    "routing",
    "write",
]
