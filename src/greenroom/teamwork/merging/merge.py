"""Merge one file that two sides changed: rung `git` by lines, rung `structure` by what the language knows."""

from typing import Final, Literal, NamedTuple

from greenroom.teamwork.merging.lines import settle_lines, settle_list, split_chunks, split_lines
from greenroom.teamwork.merging.structure import Sides, merge_blocks
from greenroom.teamwork.merging.syntax import cut_file, is_valid

Rung = Literal["git", "structure"]


class Resolution(NamedTuple):
    """One conflict that a rung resolved, and why its result is known."""

    rung: Rung
    why: str


class MergeConflict(NamedTuple):
    """One stretch that only a person or a model can merge."""

    base: str
    left: str
    right: str
    why: str


class Merge(NamedTuple):
    """A merged file. `text` has conflict markers where conflicts are left."""

    text: str
    resolutions: tuple[Resolution, ...] = ()
    conflicts: tuple[MergeConflict, ...] = ()


Texts = tuple[str, str, str]
CLASH: Final = "both sides changed the same lines"
INDENTED: Final = (".py", ".pyi", ".yml", ".yaml")
MARKERS: Final = ("<<<<<<< left\n", "||||||| base\n", "=======\n", ">>>>>>> right\n")


def merge_file(path: str, base: bytes, left: bytes, right: bytes) -> Merge:
    """Merge two versions of a file. Conflicts whose result cannot be known are left."""
    try:
        texts = (base.decode(), left.decode(), right.decode())
    except UnicodeDecodeError:
        return Merge("", (), (MergeConflict("", "", "", "the file is not UTF-8 text"),))
    by_lines = _merge_lines(path, *texts)
    if not by_lines.conflicts and not by_lines.resolutions:
        return by_lines if _is_matched_once(texts) else _refuse(texts, "the lines can be matched in two ways")
    merge = by_lines if not by_lines.conflicts else _merge_members(path, texts, by_lines) or by_lines
    if merge.conflicts or is_valid(path, merge.text) or not all(is_valid(path, text) for text in texts):
        return merge
    return _refuse(texts, "the merged file would not parse")


def _is_matched_once(texts: Texts) -> bool:
    """Return whether a merge from the last line to the first is as clean as the other way round."""
    sides = [split_lines(text)[::-1] for text in texts]
    return all(chunk.result is not None for chunk in split_chunks(sides[0], sides[1], sides[2]))


def _refuse(texts: Texts, why: str) -> Merge:
    base, left, right = texts
    text = MARKERS[0] + left + MARKERS[1] + base + MARKERS[2] + right + MARKERS[3]
    return Merge(text, (), (MergeConflict(base, left, right, why),))


def _merge_lines(path: str, base: str, left: str, right: str) -> Merge:
    parts: list[str] = []
    resolutions: list[Resolution] = []
    conflicts: list[MergeConflict] = []
    for chunk in split_chunks(split_lines(base), split_lines(left), split_lines(right)):
        if chunk.result is not None:
            parts += chunk.result
        elif settled := (settle_lines(chunk, is_indented=path.endswith(INDENTED)) or settle_list(path, chunk)):
            parts.append(settled.text)
            resolutions.append(Resolution("structure", settled.why))
        else:
            refused = _refuse(("".join(chunk.base), "".join(chunk.left), "".join(chunk.right)), CLASH)
            parts.append(refused.text)
            conflicts += refused.conflicts
    return Merge("".join(parts), tuple(resolutions), tuple(conflicts))


def _merge_members(path: str, texts: Texts, by_lines: Merge) -> Merge | None:
    base, left, right = (cut_file(path, text) for text in texts)
    if not (base and left and right):
        return None

    def merge_text(base: str, left: str, right: str) -> str | None:
        merge = _merge_lines(path, base, left, right)
        return None if merge.conflicts or merge.resolutions else merge.text

    merged = merge_blocks(Sides(base, left, right), merge_text)
    if merged is None:
        return None
    resolution = Resolution("structure", "the sides changed or added different members")
    return Merge(merged, (*by_lines.resolutions, *([resolution] * len(by_lines.conflicts))))
