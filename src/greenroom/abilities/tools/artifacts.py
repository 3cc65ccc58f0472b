"""create_artifact, update_artifact, rewrite_artifact, read_artifact and cite: results that all agents of a task share.

These tools are pure: they change only the log.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Annotated, Final, Literal, Protocol, TypeAlias

from msgspec import Meta

from greenroom.abilities.tools.files.edits import Edit
from greenroom.abilities.tools.files.tools import FirstLine, LastLine, patch_bytes, render_numbered_lines, rewrite_bytes
from greenroom.abilities.tools.files.write import NewContent, collect_seen
from greenroom.abilities.tools.tool import Arguments, CardedTool, build_schema, make_card, read_arguments
from greenroom.core.base.errors import ModelFault
from greenroom.core.base.ids import ArtifactId
from greenroom.core.base.records import evolve
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.tool import ToolExecutor
from greenroom.core.ports.web import WebPage
from greenroom.core.rules.intents import WriteArtifact
from greenroom.core.rules.knowledge import check_artifact
from greenroom.core.state.knowledge import Artifact, Citation, describe_artifact
from greenroom.core.state.origin import Labels, make_label, merge_labels
from greenroom.core.state.team_state import artifact_key

CITE_NAME: Final = "cite"
ARTIFACT_TOOLS = frozenset({"create_artifact", "update_artifact", "rewrite_artifact", "read_artifact", CITE_NAME})

DEFAULT_MEDIA_TYPE: Final = "text/markdown"

Id: TypeAlias = Annotated[str, Meta(description="Its id in this task, such as task_plan, research_report, main.py.")]
Title: TypeAlias = Annotated[str, Meta(description="What it is, in a few words.")]
Content: TypeAlias = Annotated[str, Meta(description="All of it, from the first line to the last.")]
Reason: TypeAlias = Annotated[
    str, Meta(max_length=200, description="Why, in a few words. People read it in the list of versions.")
]
BasedOn: TypeAlias = Annotated[
    int, Meta(ge=1, description="The version that you have read: if there is a newer one, nothing is written.")
]


def find_artifact(context: StepContext, name: str, expected_version: int | None = None) -> Artifact:
    """Return the named artifact. Raise `ModelFault` if `expected_version` is not the newest version."""
    name = ArtifactId(name.strip())
    found = context.state.artifacts.get(artifact_key(context.step.task_id, name))
    if found is None:
        raise ModelFault(f"There is no artifact {name!r} in this task. {render_inventory(context)}")
    if expected_version is not None and expected_version != found.version:
        there = f"is at version {found.version} by {found.by}, not {expected_version}"
        raise ModelFault(f"{found.artifact_id!r} {there}. Read it again first. Nothing was written.")
    return found


def render_inventory(context: StepContext) -> str:
    """List all artifacts of the task, one per line."""
    here = context.state.list_artifacts(context.step.task_id)
    if here:
        return "\n".join(("There are:", *map(describe_artifact, here)))
    return "There are none yet: create_artifact makes one."


def collect_origins(*artifacts: Artifact) -> Labels:
    """Collect the origins of these artifacts: what their authors had read. Content of the person has no label."""
    labels: Labels = ()
    for artifact in artifacts:
        way = (make_label("artifact", artifact.artifact_id),) if artifact.origins else ()
        labels = merge_labels(labels, (*way, *artifact.origins))
    return labels


async def write_version(
    context: StepContext,
    name: str,
    made: NewContent,
    *,
    title: str,
    media_type: str = "",
    reason: str = "",
    old: Artifact | None = None,
    blind: bool = False,
    cited: tuple[Citation, ...] | None = None,
) -> Outcome:
    """Write a new version based on `old`, unless a rule rejects it.

    The rules decide again at commit, because other agents write concurrently. `blind` means that the new content does
    not depend on the old content. `cited` are its citations; those of `old` that it still marks, if left out.
    """
    content, based_on = made.content, old.version if old is not None else 0
    citations = cited if cited is not None else filter_cited(old.citations if old is not None else (), content)
    intent = WriteArtifact(
        task_id=context.step.task_id,
        artifact_id=ArtifactId(name),
        title=title,
        media_type=old.media_type if old is not None else media_type,
        blob="",
        size=len(content),
        lines=content.count(b"\n") + bool(content and not content.endswith(b"\n")),
        based_on=based_on,
        reason=" ".join(reason.split()),
        citations=citations,
    )
    refused = check_artifact(context.state, intent, context.agent.agent_id)
    if refused is not None:
        raise ModelFault(str(refused))
    blob = await context.keep(content)
    entry = {"path": name, "before": old.blob if old else "", "digest": blob, "whole": blind}
    output = f"Version {based_on + 1} of {made.told}"
    return Outcome(
        result={"output": output, "version": based_on + 1, "files": [entry]},
        intents=(evolve(intent, blob=blob),),
        blobs=(blob,),
        origins=collect_origins(old) if old is not None else (),
    )


class CreateArguments(Arguments, frozen=True, kw_only=True):
    id: Id
    title: Title = ""
    content: Content
    media_type: Annotated[str, Meta(description=f"{DEFAULT_MEDIA_TYPE} if left out; text/x-python, text/csv …")] = (
        DEFAULT_MEDIA_TYPE
    )
    reason: Reason = ""


class CreateArtifactTool(CardedTool):
    """Creates the first version of an artifact."""

    card = make_card(
        "create_artifact",
        "Create an artifact: a result that all agents of the task can read and change: a plan (id task_plan, to keep "
        "track of the work), a report, a draft, code that is handed over. Not for one that is there already, which is "
        "changed with update_artifact, nor for files of the workspace. "
        'Example: {"id": "task_plan", "title": "Plan", "content": "- [ ] look\\n- [ ] report\\n"}',
        build_schema(CreateArguments),
        group="memory",
        seconds=60,
    )

    async def run(self, context: StepContext) -> Outcome:
        """Write the first version."""
        asked = read_arguments(CreateArguments, context.step)
        name = asked.id.strip()
        made = rewrite_bytes(name, asked.content, None)
        title = (asked.title or name).strip()
        media_type = asked.media_type.strip()
        return await write_version(
            context, name, made, title=title, media_type=media_type, reason=asked.reason, blind=True
        )


class UpdateArguments(Arguments, frozen=True):
    id: Id
    edits: Annotated[tuple[Edit, ...], Meta(min_length=1)]
    version: BasedOn | None = None
    reason: Reason = ""


class UpdateArtifactTool(CardedTool):
    """Applies changes to the newest version, so that the work of other agents is kept."""

    card = make_card(
        "update_artifact",
        "Change some places of an artifact, by text that occurs in it exactly once. Prefer it to rewrite_artifact, and "
        "change as little as possible: tick off what is done, add a finding. All changes are looked for in the newest "
        "version, and either all are made or none. Not for files: that is patch. "
        'Example: {"id": "task_plan", "edits": [{"search": "- [ ] look", "replace": "- [x] look"}]}',
        build_schema(UpdateArguments),
        group="memory",
        seconds=60,
    )

    async def run(self, context: StepContext) -> Outcome:
        """Apply the changes and report the diff."""
        asked = read_arguments(UpdateArguments, context.step)
        old = find_artifact(context, asked.id, asked.version)
        made = await asyncio.to_thread(patch_bytes, old.artifact_id, asked.edits, await context.blob(old.blob))
        return await write_version(context, old.artifact_id, made, title=old.title, reason=asked.reason, old=old)


class RewriteArtifactArguments(Arguments, frozen=True):
    id: Id
    content: Content
    title: Title = ""
    version: BasedOn | None = None
    reason: Reason = ""


class RewriteArtifactTool(CardedTool):
    """Replaces the content of an artifact. The agent must have read the whole current version."""

    card = make_card(
        "rewrite_artifact",
        "Write all of an artifact anew, when most of it changes. You must have read its newest version before, all of "
        "it, or have written it; or name that version. Not for small changes: use update_artifact, which cannot lose "
        "what others wrote. "
        'Example: {"id": "research_report", "content": "# Report\\nAll in one.\\n"}',
        build_schema(RewriteArtifactArguments),
        group="memory",
        seconds=60,
    )

    async def run(self, context: StepContext) -> Outcome:
        """Write the new version and report the diff."""
        asked = read_arguments(RewriteArtifactArguments, context.step)
        old = find_artifact(context, asked.id, asked.version)
        if asked.version is None:
            await _check_seen(context, old)
        title = (asked.title or old.title).strip()
        raw = await context.blob(old.blob)
        made = await asyncio.to_thread(rewrite_bytes, old.artifact_id, asked.content, raw)
        if made.content == raw and title == old.title:
            return Outcome(result={"output": made.told, "version": old.version})
        return await write_version(
            context, old.artifact_id, made, title=title, reason=asked.reason, old=old, blind=True
        )


async def _check_seen(context: StepContext, old: Artifact) -> None:
    """Raise `ModelFault` if the agent has not read the whole current version."""
    seen = collect_seen(await context.history(), ARTIFACT_TOOLS).get(old.artifact_id)
    if seen is not None and seen.whole and seen.digest == old.blob:
        return
    there = f"version {old.version} by {old.by}"
    why = "you have not read it" if seen is None else "you have read only a part of it"
    if seen is not None and seen.digest != old.blob:
        why = "you have not read that one"
    raise ModelFault(
        f"{old.artifact_id!r} is at {there}, and {why}. Read it with read_artifact first, or change only what you know "
        "with update_artifact. Nothing was written."
    )


class ReadArguments(Arguments, frozen=True):
    id: Annotated[str, Meta(description="Which one; all are listed if left out.")] = ""
    version: Annotated[int, Meta(ge=1, description="The newest if left out.")] | None = None
    start_line: FirstLine = 1
    end_line: LastLine | None = None


class ReadArtifactTool(CardedTool):
    """Reads a version of an artifact. Versions never change."""

    card = make_card(
        "read_artifact",
        "Read an artifact of the task, with line numbers: the newest version, or an older one. Without an id it lists "
        "all artifacts. Use it to see what others have done and before you rewrite one. Not for files: that is "
        'read_code. Example: {"id": "task_plan"} or {"id": "main.py", "start_line": 40, "end_line": 90}',
        build_schema(ReadArguments),
        group="memory",
        pure=True,
        seconds=60,
    )

    async def run(self, context: StepContext) -> Outcome:
        """Return the lines and where they stop, or the list of artifacts."""
        asked = read_arguments(ReadArguments, context.step)
        if not asked.id.strip():
            here = context.state.list_artifacts(context.step.task_id)
            return Outcome(result={"output": render_inventory(context)}, origins=collect_origins(*here))
        artifact = find_artifact(context, asked.id)
        version = asked.version or artifact.version
        blob = artifact.blob_of(version)
        if blob is None:
            why = f"There is no version {version} of {artifact.artifact_id!r}: the newest is {artifact.version}."
            raise ModelFault(why)
        name = f"{artifact.artifact_id} (version {version} of {artifact.version})"
        raw = await context.blob(blob)
        result = await asyncio.to_thread(
            render_numbered_lines, raw, name, artifact.artifact_id, asked.start_line, asked.end_line
        )
        return Outcome(result={**result, "version": version}, origins=collect_origins(artifact))


class Source(Arguments, frozen=True):
    claim: Annotated[str, Meta(min_length=1, description="Words of the artifact, which occur in it exactly once.")]
    url: Annotated[str, Meta(min_length=1, description="The page that says so. It was fetched in this run.")]
    quote: Annotated[str, Meta(min_length=8, max_length=2_000, description="Its exact words, as long as needed.")]


class CiteArguments(Arguments, frozen=True):
    id: Id
    citations: Annotated[tuple[Source, ...], Meta(min_length=1, max_length=100)]


class PageSource(Protocol):
    """The pages that a run has read."""

    async def get(self, url: str) -> WebPage | None:
        """Return a page that this run has read, or None."""


MARKS: Final = {
    "en": {"not_found": "quote not found on the page", "no_page": "page not read in this run"},
    "zh": {"not_found": "该页没有这段原文", "no_page": "本次运行没有读过该页"},
}
_MARKUP: Final = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)|[*_`#>|]|\s+")
_MARKERS: Final = re.compile(r"(?: ?\[\d+(?:: [^\[\]]*)?\])*")


def has_quote(page: str, quote: str) -> bool:
    """Return whether a page contains these words. White space, line breaks and Markdown do not count."""
    bare = _strip_markup(quote)
    return bool(bare) and bare in _strip_markup(page)


def _strip_markup(text: str) -> str:
    return _MARKUP.sub(lambda found: "".join((found[1] or "").split()), text)


def filter_cited(citations: Iterable[Citation], content: bytes) -> tuple[Citation, ...]:
    """Return the citations that a content still marks."""
    return tuple(entry for entry in citations if re.search(rb"\[%d[\]:]" % entry.number, content))


class CiteTool(CardedTool):
    """Adds sources to an artifact. Code checks each quote against the page; an agent cannot vouch for one itself."""

    card = make_card(
        CITE_NAME,
        "Give the sources of claims in an artifact. Each names a claim, a page that was fetched in this run, and the "
        "exact words of the page. `[1]` is put behind the claim. The words are looked for on the page: what is not "
        "there is marked, for you and for the person. Cite again with the right words, or change the claim. "
        'Example: {"id": "research_report", "citations": [{"claim": "The bridge is 120 m long", '
        '"url": "https://example.org/bridge", "quote": "a span of 120 metres"}]}',
        build_schema(CiteArguments),
        group="memory",
        seconds=60,
    )

    def __init__(self, pages: PageSource) -> None:
        self._pages = pages

    async def run(self, context: StepContext) -> Outcome:
        """Check the quotes, mark the claims, and write a new version."""
        asked = read_arguments(CiteArguments, context.step)
        old = find_artifact(context, asked.id)
        text, known = (await context.blob(old.blob)).decode(errors="replace"), list(old.citations)
        told, marks = list[str](), MARKS["zh" if context.agent.spec.language == "zh" else "en"]
        for source in asked.citations:
            citation = await self._check(source, known)
            if citation not in known:
                known.append(citation)
            mark = f"[{citation.number}: {marks[citation.problem]}]" if citation.problem else f"[{citation.number}]"
            text = _mark_claim(text, source.claim, mark, known)
            told.append(f"{mark} {source.url}")
        made = NewContent(content=text.encode(), told=f"{old.artifact_id!r}. Its new sources:\n" + "\n".join(told))
        cited, reason = filter_cited(known, made.content), f"sources: {len(asked.citations)}"
        return await write_version(context, old.artifact_id, made, title=old.title, reason=reason, old=old, cited=cited)

    async def _check(self, source: Source, known: Sequence[Citation]) -> Citation:
        """Return the citation of a source, checked against the page."""
        same = (entry for entry in known if (entry.url, entry.quote) == (source.url, source.quote))
        page, number = await self._pages.get(source.url), max((entry.number for entry in known), default=0) + 1
        found = Citation(number=next((entry.number for entry in same), number), url=source.url, quote=source.quote)
        if page is None:
            return evolve(found, problem="no_page")
        at = datetime.fromtimestamp(page.retrieved // 1000, tz=UTC).isoformat().replace("+00:00", "Z")
        digest = sha256(page.text.encode()).hexdigest()
        problem: Literal["", "not_found"] = "" if has_quote(page.text, source.quote) else "not_found"
        return evolve(found, title=page.title, retrieved=at, digest=digest, problem=problem)


def _mark_claim(text: str, claim: str, mark: str, known: Iterable[Citation]) -> str:
    """Return the text with the mark behind the claim. It replaces the marks of quotes that were not found."""
    if text.count(claim) != 1:
        times = f"{text.count(claim)} times" if claim in text else "nowhere"
        why = f"The claim {claim!r} stands {times} in the artifact. Name words that occur exactly once."
        raise ModelFault(f"{why} Nothing was written.")
    end = text.index(claim) + len(claim)
    behind = _MARKERS.match(text, end)
    marks = re.findall(r"\[(\d+)(?:: [^\[\]]*)?\]", behind[0]) if behind is not None else []
    bad = {entry.number for entry in known if entry.problem}
    kept = "".join(f"[{number}]" for number in marks if int(number) not in bad and f"[{number}]" != mark)
    return f"{text[:end]}{kept}{mark}{text[behind.end() if behind is not None else end :]}"


def build_artifact_tools(pages: PageSource | None = None) -> tuple[ToolExecutor, ...]:
    """Build create_artifact, update_artifact, rewrite_artifact and read_artifact; with `pages`, also cite."""
    cite = (CiteTool(pages),) if pages is not None else ()
    return (CreateArtifactTool(), UpdateArtifactTool(), RewriteArtifactTool(), ReadArtifactTool(), *cite)
