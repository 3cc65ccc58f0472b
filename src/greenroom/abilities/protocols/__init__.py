"""Write tool calls as text and parse them: five protocols, each a prompt and a parser.

    name            a block                                                     becomes a call of
    tool_call       <TOOL_CALL> JSON: name, arguments </TOOL_CALL>              that tool
    xml_tool        <tool_call><name>…</name><params>…</params></tool_call>     that tool, or call_subagent
    send_message    <SEND_MESSAGE> YAML: to, content </SEND_MESSAGE>            send_message: receiver, message, handoff
    patch           <PATCH file="…"> DIFF, SEARCH, REPLACE … </PATCH>           patch: file, edits
    rewrite         <REWRITE file="…"> content </REWRITE>                       rewrite: file, content

    render_prompt(["tool_call", "patch"], tools=tools)  the instructions for the model
    read(reply, ["tool_call", "patch"], tools=tools)    NoBlock | BlockCall | BlockRejection

A block runs only if all of these conditions hold. Otherwise `BlockRejection` tells the model why. It offers a corrected
block if that needs no guess. `NoBlock.hint` tells the model why its text was not recognised as a block.

- Its opening tag begins a line, or follows reasoning, and nothing follows its end tag on that line (`blocks`).
  Invisible characters around and in its tags do not count.
- It is not inside reasoning, code, a comment or another element, closed or not. A block in a code fence never runs,
  even when it is the whole reply.
- The text after it cannot belong to it: no second end tag, no code fence that is never closed.
- It is the only block (`policy="reject"`), or the first; the others are reported (`policy="first"`).
- It is complete. JSON and parameters show their own end, so their end tag may be missing. A YAML message without its
  end tag is accepted only if the model stopped by itself (`ended`). A YAML tool call without its end tag must also have
  no side effects. A truncated block never runs and is never offered again. Edits are never completed. If the provider
  cut the reply off (`ended=False`), nothing with side effects runs.
- It matches the tool's schema exactly. A scalar of YAML is as it is written where the schema wants a text.
- A repaired block (`strict_json`: only unambiguous repairs) runs only for tools without side effects (`pure`).

Texts stay as they are, byte for byte: nothing is unescaped. Only the line breaks next to the tags belong to the tags.
CDATA is unwrapped where it is the whole text; in a patch, only where the text needs it.
"""
