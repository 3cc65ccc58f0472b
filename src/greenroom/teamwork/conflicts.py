"""The ladder of a conflict: git, structure, a model, a person. Which result is taken, and what is recorded. Pure."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from functools import lru_cache
from typing import Final, Literal

import msgspec

from greenroom.core.base.errors import Bug, ModelFault, WorldFault, translate
from greenroom.core.base.ids import SubtaskId
from greenroom.core.base.records import evolve, record
from greenroom.core.state.step import Step
from greenroom.runs.verdict import INTEGRATED_KEY
from greenroom.teamwork.merging.lines import QUOTE, RAISED_VERSION, WORD, split_chunks, split_lines
from greenroom.teamwork.merging.merge import MARKERS, Merge, MergeConflict, merge_file
from greenroom.teamwork.merging.syntax import is_valid
from greenroom.teamwork.plan import TeamSettings

ConflictType = Literal["file-modification", "api-inconsistency", "naming-conflict"]
ConflictRung = Literal["git", "structure", "strategy", "model", "person", "author"]
ConflictState = Literal["resolved", "proposed", "open", "sent back", "mended", "left out"]
Severity = Literal["low", "medium", "high"]
SideName = Literal["left", "right"]

ACCEPTED_KEY: Final = "accepted"
"""The key in the instruction of an entry that a person lets be merged although checks fail."""

CONFLICTS_KEY: Final = "conflicts"
"""The key of conflicts in results and instructions of steps."""

CODE_STRATEGIES: Final = ("merge", "timestamp", "priority")
"""Strategies by which code merges. With any other one a person decides."""

MAX_MODEL_CHARS: Final = 200_000
"""The longest file whose conflicts a model is asked about."""

MAX_KNOWN_MERGES: Final = 16
"""How many merges by code are kept, so that none runs twice."""


@record
class ConflictRecord:
    """A conflict of two subtasks, and which rung of the ladder made what of it.

    `original` is the blob of the file before, `versions` are those of the two `subtasks`, `result` is that of the
    merge; without a file it is empty. `digest` identifies the three versions. `confidence` is None if the rung's is
    unmeasured. `dropped_lines` are what the result lacks, although a subtask added them or both kept them. What is
    *sent back* is mended by the author.
    """

    type: ConflictType
    involved_agents: tuple[str, ...]
    description: str
    severity: Severity
    path: str = ""
    subtasks: tuple[str, str] = ("", "")
    original: str = ""
    versions: tuple[str, str] = ("", "")
    digest: str = ""
    result: str = ""
    rung: ConflictRung = "git"
    strategy: str = "merge"
    why: str = ""
    confidence: float | None = None
    dropped_lines: tuple[str, ...] = ()
    state: ConflictState = "open"

    @property
    def requires_human_review(self) -> bool:
        """Whether it still has to be resolved."""
        return self.state != "resolved"

    @property
    def message(self) -> str:
        """How it was resolved, or that it is not."""
        key = f"conflicts.is_{self.state.replace(' ', '_')}"
        return translate(key, path=self.path or self.description, why=self.why)


@record
class ConflictSide:
    """A subtask on one side of a conflict: its agent, what it was to do and says that it did, and when."""

    subtask: str
    agent: str
    intent: str = ""
    priority: int = 0
    handed_in: int = 0


@record
class ConflictedFile:
    """A file that git could not merge. `left` is the version of the integration branch, `right` that of the new
    subtask. A version is None if the file is not there."""

    path: str
    base: bytes | None
    left: bytes | None
    right: bytes | None

    @property
    def texts(self) -> tuple[str, str, str] | None:
        """The three versions as text; None if one cannot be merged by lines."""
        if self.left is None or self.right is None:
            return None
        try:
            base, left, right = ((version or b"").decode() for version in (self.base, self.left, self.right))
        except UnicodeDecodeError:
            return None
        return None if "\0" in base + left + right else (base, left, right)

    @property
    def digest(self) -> str:
        """Identifies the conflict. A resolution is for exactly these three versions."""
        found = hashlib.sha256(self.path.encode())
        for version in (self.base, self.left, self.right):
            found.update(b"-" if version is None else hashlib.sha256(version).digest())
        return found.hexdigest()

    def pick(self, side: SideName) -> bytes | None:
        """Return the version of a side."""
        return self.left if side == "left" else self.right


@record
class FileMerge:
    """What the ladder made of a file. `content` is the result or the proposal, None without one or without a file."""

    file: ConflictedFile
    record: ConflictRecord
    content: bytes | None = None

    @property
    def by_code(self) -> Merge | None:
        """What code makes of the text; None if the file is not text."""
        return merge_by_code(self.file)

    @property
    def draft(self) -> bytes | None:
        """What the author goes on with: what code merged, with both versions of the rest between markers."""
        merge = self.by_code
        return merge.text.encode() if merge else self.file.right


# ------------------------------------------------------------------------------------------------------- the stretches


@lru_cache(maxsize=MAX_KNOWN_MERGES)
def merge_by_code(file: ConflictedFile) -> Merge | None:
    """Return what code makes of a file; None if it is not text.

    Code that doubts its own merge refuses the whole file. Then the conflicts are git's, with the reason of the doubt.
    """
    if (texts := file.texts) is None:
        return None
    merge = merge_file(file.path, *(text.encode() for text in texts))
    if [stretch[:3] for stretch in merge.conflicts] != [texts]:
        return merge
    why = merge.conflicts[0].why
    pairs = [
        (chunk.result, MergeConflict("".join(chunk.base), "".join(chunk.left), "".join(chunk.right), why))
        for chunk in split_chunks(*map(split_lines, texts))
    ]
    parts = ("".join(known) if known is not None else _add_markers(stretch) for known, stretch in pairs)
    return Merge("".join(parts), (), tuple(stretch for known, stretch in pairs if known is None))


def _add_markers(stretch: MergeConflict) -> str:
    versions = [text + "\n" * (text[-1:] not in ("", "\n")) for text in (stretch.left, stretch.base, stretch.right)]
    return "".join(map("".join, zip(MARKERS, (*versions, ""), strict=True)))


def cut_known(merge: Merge) -> list[str]:
    """Return the known texts before, between and after the stretches that conflict."""
    parts, rest = list[str](), merge.text
    for conflict in merge.conflicts:
        known, found, rest = rest.partition(_add_markers(conflict))
        if not found:
            raise Bug("A merge does not have the conflict that it names.")
        parts.append(known)
    return [*parts, rest]


def fill_stretches(merge: Merge, texts: Sequence[str]) -> str:
    """Return the merged text with these texts for the stretches that conflict, one for each."""
    *known, last = cut_known(merge)
    parts = zip(known, map(_end_line, texts, merge.conflicts), strict=True)
    return "".join(map("".join, parts)) + last


def _end_line(text: str, stretch: MergeConflict) -> str:
    ends = any(side.endswith("\n") for side in (stretch.left, stretch.right))
    return f"{text}\n" if ends and text and not text.endswith("\n") else text


def pick_stretches(merge: Merge, side: SideName) -> str:
    """Return the merged text in which a side has each stretch that conflicts."""
    return fill_stretches(merge, [stretch.left if side == "left" else stretch.right for stretch in merge.conflicts])


def read_stretches(merge: Merge, text: str) -> list[str] | None:
    """Return what a text has for each stretch that conflicts; None if the rest of it is not as it was merged, or if it
    cannot be told apart."""
    rest, *known = cut_known(merge)
    found = list[str]()
    if not text.startswith(rest):
        return None
    rest = text.removeprefix(rest)
    for number, part in enumerate(known, 1):
        is_last = number == len(known)
        if not (rest.endswith(part) if is_last else rest.count(part) == 1):
            return None
        at = len(rest) - len(part) if is_last else rest.find(part)
        found.append(rest[:at])
        rest = rest[at + len(part) :]
    return found


def list_panes(merged: FileMerge) -> list[tuple[str, str, str]]:
    """Return each stretch as a person sees it: left, then the proposal or else what was there before, then right."""
    merge, file = merged.by_code, merged.file
    if merge is None:
        left, base, right = map(_describe_content, (file.left, file.base, file.right))
        return [(left, base, right)]
    if merged.content is None:
        return [(part.left, part.base, part.right) for part in merge.conflicts]
    text = merged.content.decode()
    found = zip(merge.conflicts, read_stretches(merge, text) or (), strict=False)
    panes = [(part.left, stretch, part.right) for part, stretch in found]
    return panes or [((file.left or b"").decode(), text, (file.right or b"").decode())]


def _describe_content(content: bytes | None) -> str:
    if content is None:
        return translate("conflicts.pane_removed")
    return translate("conflicts.pane_bytes", count=len(content))


def has_markers(text: str) -> bool:
    """Return whether a text has a line that begins or ends a conflict."""
    return any(line.startswith(("<<<<<<< ", "||||||| ", ">>>>>>> ")) for line in text.splitlines())


def find_dropped_lines(base: str, left: str, right: str, result: str) -> tuple[str, ...]:
    """Return the lines that the result lacks, although a side added them or both sides kept them.

    Blank lines and indentation do not count. A line that both sides added must be there once, a line that one side
    added and the other removed as often as both changes together leave it.
    """
    return _find_missing(*(map(str.strip, text.splitlines()) for text in (base, left, right, result)))


def find_lost_lines(base: str, left: str, right: str, result: str) -> tuple[str, ...]:
    """Return the dropped lines of a merge by code, without those that it formatted or whose words it kept.

    A line that both sides edited is not in the result as one side wrote it, but both edits are.
    """
    texts = (base, left, right, result)
    plain = _find_missing(*(("".join(line.split()) for line in text.splitlines()) for text in texts))
    words = set(_find_missing(*(WORD.findall(text) for text in texts)))
    dropped = [line for line in find_dropped_lines(*texts) if not words.isdisjoint(WORD.findall(line))]
    return tuple(line for line in dropped if QUOTE.search(line) or "".join(line.split()) in plain)


def _find_missing(*versions: Iterable[str]) -> tuple[str, ...]:
    """Return what the last version lacks of base, left and right."""
    before, ours, theirs, found = (Counter(filter(str.strip, parts)) for parts in versions)
    missing = list[str]()
    for part in ours | theirs:
        old, counts = before[part], (ours[part], theirs[part])
        wanted = max(counts) if min(counts) >= old else sum(counts) - old
        if found[part] < wanted:
            missing.append(part)
    return tuple(missing)


# ---------------------------------------------------------------------------------------------------------- the ladder


def pick_winner(strategy: str, left: ConflictSide, right: ConflictSide) -> SideName | None:
    """Return the side that a strategy prefers: `timestamp` the later one, `priority` the one with the lower number."""
    if strategy == "timestamp":
        return "right" if right.handed_in >= left.handed_in else "left"
    if strategy == "priority" and left.priority != right.priority:
        return "right" if right.priority < left.priority else "left"
    return None


def resolve_file(file: ConflictedFile, left: ConflictSide, right: ConflictSide, settings: TeamSettings) -> FileMerge:
    """Resolve a file by code, as far as the strategy allows it. The rest is a proposal, or open."""
    strategy, winner = settings.conflict_strategy, pick_winner(settings.conflict_strategy, left, right)
    found = describe_conflict(file, left, right, strategy)
    won = evolve(found, rung="strategy", state="resolved", why=_explain_winner(strategy, winner, left, right))
    texts, merge = file.texts, merge_by_code(file)
    if texts is None or merge is None:
        return FileMerge(file=file, record=won if winner else found, content=file.pick(winner) if winner else None)
    is_sure = strategy in CODE_STRATEGIES and merge.confidence >= settings.auto_resolve_threshold
    why = "; ".join(dict.fromkeys(part.why for part in merge.conflicts or merge.resolutions))
    if not merge.conflicts:
        done = evolve(found, rung="structure", confidence=merge.confidence, severity="low", why=why)
        merged = _merge_text(file, done, texts, merge.text)
        drops_more = merged.record.dropped_lines and any(part.why != RAISED_VERSION for part in merge.resolutions)
        state: ConflictState = "resolved" if is_sure and not drops_more else "proposed"
        return evolve(merged, record=evolve(merged.record, state=state))
    if winner is None or not is_sure:
        return FileMerge(file=file, record=evolve(found, why=why))
    return _merge_text(file, won, texts, pick_stretches(merge, winner))


def describe_conflict(file: ConflictedFile, left: ConflictSide, right: ConflictSide, strategy: str) -> ConflictRecord:
    """Return the record of a conflict that is still open."""
    is_text, is_there = file.texts is not None, file.left is not None and file.right is not None
    return ConflictRecord(
        type="file-modification",
        involved_agents=tuple(dict.fromkeys((left.agent, right.agent))),
        description=translate("conflicts.description", left=left.subtask, right=right.subtask, path=file.path),
        severity="medium" if is_text else "high",
        path=file.path,
        subtasks=(left.subtask, right.subtask),
        digest=file.digest,
        strategy=strategy,
        why="" if is_text else translate("conflicts.not_text" if is_there else "conflicts.removed"),
    )


def _explain_winner(strategy: str, winner: SideName | None, left: ConflictSide, right: ConflictSide) -> str:
    names = {"left": left.subtask, "right": right.subtask}
    return translate(f"conflicts.by_{strategy}", subtask=names[winner]) if winner is not None else ""


def _merge_text(file: ConflictedFile, found: ConflictRecord, texts: tuple[str, str, str], text: str) -> FileMerge:
    find = find_lost_lines if found.rung == "structure" else find_dropped_lines
    dropped = find(*texts, text)
    return FileMerge(file=file, record=evolve(found, dropped_lines=dropped), content=text.encode())


def propose_by_model(merged: FileMerge, stretches: Sequence[str], why: str, settings: TeamSettings) -> FileMerge:
    """Return a file with the stretches that a model merged. Code looks at the proposal before anything takes it.

    It is taken only if the settings accept merges of models, no line was dropped, and the file still parses. Raise
    `ModelFault` if it cannot be used at all.
    """
    texts, path, merge = merged.file.texts, merged.file.path, merged.by_code
    if texts is None or merge is None or len(stretches) != len(merge.conflicts):
        count = len(merge.conflicts) if merge else 0
        raise ModelFault(f"{path} has {count} stretches to merge, and the answer has {len(stretches)}.")
    if any(map(has_markers, stretches)):
        raise ModelFault(f"The answer for {path} has conflict markers.")
    text = fill_stretches(merge, stretches)
    done = _merge_text(merged.file, evolve(merged.record, rung="model", why=why), texts, text)
    is_broken = is_valid(path, text) is False and all(is_valid(path, old) is not False for old in texts)
    is_sure = merge.confidence >= settings.auto_resolve_threshold
    is_taken = settings.accept_model_merges and is_sure and not done.record.dropped_lines and not is_broken
    why = translate("conflicts.broken", why=why) if is_broken else why
    return evolve(done, record=evolve(done.record, state="resolved" if is_taken else "proposed", why=why))


def settle_by_person(merged: FileMerge, choice: str, text: str | None = None) -> FileMerge:
    """Return a file as a person wants it: `accept` the proposal, `left`, `right`, or this whole text.

    Of a text, a side gets only the stretches that conflict. Raise `WorldFault` if there is no such choice.
    """
    texts, path = merged.file.texts, merged.file.path
    if text is not None:
        content: bytes | None = text.encode()
        if has_markers(text):
            raise WorldFault("conflicts.markers_left", path=path)
    elif choice in ("left", "right"):
        side: SideName = "left" if choice == "left" else "right"
        merge = merged.by_code
        content = pick_stretches(merge, side).encode() if merge else merged.file.pick(side)
    elif choice == "accept" and merged.content is not None:
        content = merged.content
    else:
        raise WorldFault("conflicts.no_choice", path=path, choice=choice)
    dropped = merged.record.dropped_lines
    if content != merged.content:
        dropped = find_dropped_lines(*texts, content.decode()) if texts is not None and content is not None else ()
    why = translate("conflicts.by_person", choice=choice) if text is None else translate("conflicts.written")
    done = evolve(merged.record, rung="person", confidence=None, state="resolved", dropped_lines=dropped, why=why)
    return evolve(merged, record=done, content=content)


def apply_settled(merged: FileMerge, settled: FileMerge) -> FileMerge:
    """Return a file with the resolution of a model or a person.

    If other work was merged meanwhile, the same stretches get the same texts. The resolution is void if other stretches
    conflict, or are resolved by code, or if a model's text drops a line now.
    """
    if settled.file.digest == merged.file.digest:
        return FileMerge(file=merged.file, record=settled.record, content=settled.content)
    old, new, texts = settled.by_code, merged.by_code, merged.file.texts
    if old is None or new is None or texts is None or settled.content is None or old[1:] != new[1:]:
        return merged
    stretches = read_stretches(old, settled.content.decode()) if old.conflicts else None
    if stretches is None:
        return merged
    kept = {"path", "subtasks", "involved_agents", "description", "digest"}
    record = evolve(settled.record, **{name: getattr(merged.record, name) for name in kept})
    done = _merge_text(merged.file, record, texts, fill_stretches(new, stretches))
    return merged if record.rung == "model" and done.record.dropped_lines else done


def can_ask_model(merged: FileMerge) -> bool:
    """Return whether the ladder leads to a model: the file is open, and its stretches are text of a sensible size."""
    texts, is_ladder = merged.file.texts, merged.record.strategy in ("merge", "priority")
    return merged.record.state == "open" and is_ladder and texts is not None and max(map(len, texts)) <= MAX_MODEL_CHARS


def choose_next(merged: Iterable[FileMerge], settings: TeamSettings) -> Literal["done", "model", "person", "fail"]:
    """Return what comes next for an entry: it can be merged, a model proposes, a person decides, or it has failed."""
    left = [part for part in merged if part.record.state != "resolved"]
    if not left:
        return "done"
    asks = [can_ask_model(part) for part in left]
    if any(asks) and (settings.fallback_to_human or (settings.accept_model_merges and all(asks))):
        return "model"
    return "person" if settings.fallback_to_human else "fail"


# --------------------------------------------------------------------------------------------------------- the records


def read_conflicts(data: object) -> tuple[ConflictRecord, ...]:
    """Return the conflicts of a step's result. Raise `WorldFault` for a type that is unknown."""
    try:
        return msgspec.convert(data or (), tuple[ConflictRecord, ...])
    except msgspec.ValidationError as error:
        raise WorldFault("conflicts.unreadable", error=error) from None


def collect_conflicts(steps: Iterable[Step], lost: Container[SubtaskId] = ()) -> list[ConflictRecord]:
    """Return the conflicts of a run from its ended steps, oldest first, each with its newest state.

    What was not resolved when the work of its subtask is merged, its author has mended. The work of a `lost` subtask
    was left out.
    """
    found = dict[tuple[SubtaskId | None, str, str, str], ConflictRecord]()
    for step in steps:
        result = step.result or {}
        is_accepted = bool((step.work.instruction_content or {}).get(ACCEPTED_KEY))
        for key in [key for key in found if INTEGRATED_KEY in result and key[0] == step.subtask_id]:
            if found[key].state != "resolved":
                known = found[key]
                accepted = evolve(known, rung="person", state="resolved", why=translate("conflicts.accepted"))
                found[key] = accepted if is_accepted else evolve(known, state="mended")
        for conflict in read_conflicts(result.get(CONFLICTS_KEY)):
            what = "" if conflict.type == "file-modification" else conflict.description
            found[step.subtask_id, conflict.type, conflict.path, what] = conflict
    return [
        evolve(conflict, state="left out") if key[0] is not None and key[0] in lost else conflict
        for key, conflict in found.items()
    ]
