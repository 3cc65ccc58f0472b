"""Merge files by their members: imports, definitions, keys and list items, each known by its name."""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from greenroom.teamwork.merging.lines import split_chunks
from greenroom.teamwork.merging.syntax import SyntaxBlock, SyntaxMember

COMMENT: Final = re.compile(r"#|//|/\*")
COMMA_AND_COMMENT: Final = re.compile(r",[ \t]*(#|//|/\*)[^\n]*\n?$")

MergeText = Callable[[str, str, str], str | None]
"""Merge base, left and right by lines; None if a conflict is left."""


class Sides(NamedTuple):
    """One thing in three versions."""

    base: SyntaxBlock
    left: SyntaxBlock
    right: SyntaxBlock


def merge_blocks(sides: Sides, merge_text: MergeText) -> str | None:
    """Return the merged lines of a block, None if its members leave a conflict."""
    known = [{member.key: member for member in side.members} for side in sides]
    order = _merge_order(known) if len({side.kind for side in sides}) == 1 else None
    if order is None:
        return None
    head = merge_text(sides.base.head, sides.left.head, sides.right.head)
    foot = merge_text(sides.base.foot, sides.left.foot, sides.right.foot)
    texts = [_merge_member([members.get(key) for members in known], merge_text) for key in order]
    if head is None or foot is None or any(text is None for text in texts):
        return None
    lines = [text or "" for text in texts]
    if any(side.has_commas for side in sides):
        joined = _put_commas(lines, sides)
        return None if joined is None else head + joined + foot
    return head + "".join(lines) + foot


def _merge_order(known: list[dict[str, SyntaxMember]]) -> list[str] | None:
    order: list[str] = []
    keys = [tuple(side) for side in known]
    for chunk in split_chunks(keys[0], keys[1], keys[2], may_touch=True):
        result = chunk.result
        if result is None:
            added = [key for key in (*chunk.left, *chunk.right) if key not in known[0]]
            free = all((known[1].get(key) or known[2][key]).is_free for key in added)
            if not free or any(key in known[0] for key in (*chunk.base, *chunk.left, *chunk.right)):
                return None
            result = tuple(dict.fromkeys(added))
        order += result
    kept = {key for key in known[0] if key in known[1] and key in known[2]}
    added_keys = (known[1].keys() | known[2].keys()) - known[0].keys()
    is_whole = len(order) == len(set(order)) and set(order) == kept | added_keys
    return order if is_whole and not _lost_edit(known) else None


def _lost_edit(known: list[dict[str, SyntaxMember]]) -> bool:
    """Return whether one side deleted what the other changed."""
    return any(
        key not in side and key in other and other[key].text != member.text
        for key, member in known[0].items()
        for side, other in ((known[1], known[2]), (known[2], known[1]))
    )


def _merge_member(versions: list[SyntaxMember | None], merge_text: MergeText) -> str | None:
    base, left, right = versions
    if left is None or right is None:
        present = left or right
        return present.text if present else None
    if base is None:
        return left.text if "".join(left.text.split()) == "".join(right.text.split()) else None
    merged = merge_text(base.text, left.text, right.text)
    if merged is not None or not (base.block and left.block and right.block):
        return merged
    return merge_blocks(Sides(base.block, left.block, right.block), merge_text)


def _put_commas(members: list[str], sides: Sides) -> str | None:
    """Join members by commas; the last one has a comma if it had one on a side."""
    *others, last = members or [""]
    lines = [_add_comma(member) for member in others]
    if any(side.ends_with_comma for side in sides):
        lines.append(_add_comma(last))
    elif COMMA_AND_COMMENT.search(last):
        return None
    else:
        lines.append(last)
    return None if any(line is None for line in lines) else "".join(line or "" for line in lines)


def _add_comma(member: str) -> str | None:
    code = member.rstrip("\n")
    if code.endswith(",") or COMMA_AND_COMMENT.search(code):
        return member
    if COMMENT.search(code.rsplit("\n", 1)[-1]) or not member.endswith("\n"):
        return None
    return code + "," + member[len(code) :]
