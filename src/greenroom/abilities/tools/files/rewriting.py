"""rewrite: a new file, or all of an old one."""

from __future__ import annotations

from greenroom.abilities.tools.files.diffs import compared
from greenroom.abilities.tools.files.texts import Flat, Text, counted, decoded, flat
from greenroom.abilities.tools.files.tool import FileTool, failed, given
from greenroom.abilities.tools.files.writing import Job, Made, Writing
from greenroom.core.base.errors import ModelFault
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import ToolCard


class Rewrite(FileTool):
    """Keyed. What it would write over must have been read, and all of it."""

    card = ToolCard(
        spec=ToolSpec(
            name="rewrite",
            description=(
                "Write a whole text file: a new one, or an old one of which most changes. An old one must have been "
                "read before, all of it. Not for small changes: use patch, which cannot lose the rest of the file. "
                'Example: {"file": "src/new.py", "content": "print(1)\\n"}'
            ),
            parameters={
                "type": "object",
                "properties": {
                    "file": {"type": "string", "description": "Path from the workspace's root; folders are made."},
                    "content": {"type": "string", "description": "All of the file, from the first line to the last."},
                },
                "required": ["file", "content"],
            },
        ),
        group="edit",
        effect="keyed",
        seconds=120,
    )

    async def run(self, bench: Bench) -> Outcome:
        """Write it, and say how many bytes and what has changed."""
        try:
            arguments = given(bench)
            arguments.only(("file", "content"))
            file, content = arguments.text("file"), arguments.text("content", blank=True)
        except ModelFault as fault:
            return failed(fault, " Nothing was written.")
        job = Job(file=file, make=lambda raw: rewritten(file, content, raw), blind=True)
        return await Writing(self._files, bench).run([job])


def rewritten(file: str, content: str, raw: bytes | None) -> Made:
    """The new bytes: an old file keeps its encoding and the line ends that it has most of."""
    if raw is None:
        made = Text(content="").encoded(content, file)
        lines = Flat(content).lines
        return Made(content=made, told=f"{file}: new, {counted(lines, 'line')}, {counted(len(made), 'byte')} written.")
    text = decoded(raw, file)
    old = Flat(text.content)
    new = flat(content) if old.text.count("\n") else content
    if old.usual_ending == "\r\n":
        new = flat(content).replace("\n", "\r\n")
    made = text.encoded(new, file)
    if made == raw:
        return Made(content=made, told=f"{file}: it has this content already. Nothing was written.")
    diff = compared(old.text, flat(content))
    head = f"{file}: rewritten, +{diff.added} −{diff.removed} lines, {counted(len(made), 'byte')} written."
    return Made(content=made, told=f"{head}\n{diff.text}")
