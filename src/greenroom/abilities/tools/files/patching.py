"""patch: changes at some places of a file, or of several files at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from greenroom.abilities.tools.files.arguments import Arguments
from greenroom.abilities.tools.files.diffs import summed_up
from greenroom.abilities.tools.files.edits import Edit, Misfit, done, fitted, read_edits
from greenroom.abilities.tools.files.texts import Flat, counted, decoded
from greenroom.abilities.tools.files.tool import FileTool, failed, given
from greenroom.abilities.tools.files.writing import Job, Made, Writing
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.files import FileFault
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import ToolCard

EDITS: Data = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "properties": {
            "search": {"type": "string", "description": "Text copied from the file; it must occur exactly once."},
            "search_start": {"type": "string", "description": "Instead of search: how a long stretch begins."},
            "search_end": {"type": "string", "description": "How that stretch ends. Both marks are replaced too."},
            "replace": {"type": "string", "description": "What takes its place; empty deletes."},
            "range": {
                "type": "array",
                "items": {"type": "integer", "minimum": 1},
                "minItems": 2,
                "maxItems": 2,
                "description": "First and last line in which to look.",
            },
        },
        "required": ["replace"],
    },
}


class Patch(FileTool):
    """Keyed: all changes of a call or none, also over several files."""

    card = ToolCard(
        spec=ToolSpec(
            name="patch",
            description=(
                "Change some places of a text file. Prefer it to rewrite, and change as little as possible. All "
                "changes are looked for in the file as it is now, and either all are made or none. For several files "
                "at once give `files` instead of `file` and `edits`. Not for new files: use rewrite. "
                'Example: {"file": "src/app.py", "edits": [{"search": "x = 1\\n", "replace": "x = 2\\n"}]}'
            ),
            parameters={
                "type": "object",
                "properties": {
                    "file": {"type": "string", "description": "Path from the workspace's root."},
                    "edits": EDITS,
                    "files": {
                        "type": "array",
                        "minItems": 1,
                        "description": "Several files, all or none.",
                        "items": {
                            "type": "object",
                            "properties": {"file": {"type": "string"}, "edits": EDITS},
                            "required": ["file", "edits"],
                        },
                    },
                },
            },
        ),
        group="edit",
        effect="keyed",
        seconds=120,
    )

    def _paths(self, arguments: Data) -> Iterable[object]:
        files = arguments.get("files")
        several = files if isinstance(files, list | tuple) else ()
        return (arguments.get("file"), *(one.get("file") for one in several if isinstance(one, dict)))

    async def run(self, bench: Bench) -> Outcome:
        """Make the changes, and say what came of them."""
        try:
            jobs = [_job(one) for one in _files(given(bench))]
        except ModelFault as fault:
            return failed(fault, " Nothing was written.")
        return await Writing(self._files, bench).run(jobs)


def _files(arguments: Arguments) -> Sequence[Arguments]:
    """The files of a call, in either form."""
    arguments.only(("file", "edits", "files"))
    one = arguments.given.get("file") is not None or arguments.given.get("edits") is not None
    if one == (arguments.given.get("files") is not None):
        raise ModelFault("patch: give 'file' and 'edits', or 'files' for several files.")
    return [arguments] if one else arguments.several("files")


def _job(arguments: Arguments) -> Job:
    file = arguments.text("file")
    edits = read_edits(arguments)
    return Job(file=file, make=lambda raw: patched(file, edits, raw))


def patched(file: str, edits: Sequence[Edit], raw: bytes | None) -> Made:
    """The file's new bytes and the diff; `Misfit` names the file."""
    if raw is None:
        raise FileFault("missing", f"There is no {file!r} to change. Use rewrite for a new file.")
    text = decoded(raw, file)
    flat = Flat(text.content)
    try:
        spans = fitted(flat, edits)
    except Misfit as misfit:
        raise Misfit(misfit.reason, f"{file}: {misfit}") from misfit
    content = text.encoded(done(flat, spans), file)
    diff = summed_up(flat.text, spans)
    changes = "1 change" if len(spans) == 1 else f"{len(spans)} changes"
    head = f"{file}: {changes}, +{diff.added} −{diff.removed} lines, {counted(len(content), 'byte')} written."
    return Made(content=content, told=f"{head}\n{diff.text}")
