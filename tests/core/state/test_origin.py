"""Labels of where something comes from: a closed vocabulary, few of each kind, and they only ever grow."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.core.base.ids import AgentId, TaskId, ThreadId
from greenroom.core.state.origin import (
    CHANNEL_KINDS,
    MAX_NAME_CHARS,
    MAX_NAMES_PER_KIND,
    PRIVATE_KINDS,
    UNTRUSTED_KINDS,
    filter_private,
    filter_untrusted,
    make_label,
    merge_labels,
)
from greenroom.core.state.thread import Thread, add_origins

THREAD = Thread(thread_id=ThreadId("ann@t1"), agent_id=AgentId("ann"), task_id=TaskId("t1"))
LABELS = st.lists(
    st.builds("{}:{}".format, st.sampled_from(sorted(UNTRUSTED_KINDS | CHANNEL_KINDS)), st.sampled_from("abcdefghijk*"))
)


def test_a_label_is_one_short_line_of_a_known_kind() -> None:
    assert make_label("web", "docs.python.org") == "web:docs.python.org"
    assert make_label("nonsense", "x") == "tool:x", "of what nobody knows the worst is thought"
    assert make_label("file", "a\nb\x1b[0m") == "file:a?b?[0m"
    assert make_label("file", "") == "file:?"
    assert len(make_label("file", "x" * 500)) == len("file:") + MAX_NAME_CHARS
    assert make_label("file", "x" * MAX_NAME_CHARS) == f"file:{'x' * MAX_NAME_CHARS}"


def test_many_of_a_kind_become_one_that_stands_for_all() -> None:
    few = merge_labels((), (f"file:{number}" for number in range(MAX_NAMES_PER_KIND)))
    assert len(few) == MAX_NAMES_PER_KIND
    many = merge_labels(few, ("web:a", "file:one more"))
    assert many == ("web:a", "file:*")
    assert merge_labels(many, ("file:again", "web:a")) is many
    assert merge_labels(("file:a", "web:a"), ("file:*",)) == ("web:a", "file:*")


@given(LABELS, LABELS)
def test_what_was_read_stays_read_and_never_takes_much_room(old: list[str], new: list[str]) -> None:
    before = merge_labels((), old)
    after = merge_labels(before, new)
    kinds = {one.partition(":")[0] for one in (*before, *after)}
    assert len(after) <= MAX_NAMES_PER_KIND * len(kinds)
    assert all(one in after or f"{one.partition(':')[0]}:*" in after for one in (*before, *map(str, new)))
    assert {one.partition(":")[0] for one in before} <= {one.partition(":")[0] for one in after}
    assert merge_labels(after, (*old, *new)) is after


def test_a_page_is_strange_a_file_is_both_and_a_way_is_neither() -> None:
    read = ("web:a", "file:b", "agent:ann", "description:git", "artifact:plan")
    assert filter_untrusted(read) == ("web:a", "file:b", "description:git")
    assert filter_private(read) == ("file:b",)
    assert PRIVATE_KINDS <= UNTRUSTED_KINDS


@pytest.mark.parametrize(
    ("steps", "exposed"),
    [
        ((("web:a", 5),), None),
        ((("description:git", 5), ("web:a", 6)), None),
        ((("web:a", 5), ("agent:bob", 6), ("file:b", 7), ("web:c", 8)), 7),
        ((("file:b", 3),), 3),
    ],
)
def test_a_conversation_is_exposed_from_when_it_has_both(steps: list[tuple[str, int]], exposed: int | None) -> None:
    thread = THREAD
    for one, at in steps:
        thread = add_origins(thread, (one,), at)
    assert thread.exposed_at == exposed


@pytest.mark.parametrize(
    ("reads", "since"),
    [((), 7), (("web:z",), 7), (("mcp:git",), 7), (("command:curl",), 5), (("web:z", "file:c"), 5), (("tool:up",), 5)],
)
def test_a_call_that_holds_something_itself_is_exposed_from_when_somebody_may_have_told_it_to(
    reads: tuple[str, ...], since: int
) -> None:
    thread = add_origins(add_origins(THREAD, ("web:a",), 5), ("file:b",), 7)
    assert thread.exposed_by(reads) == since
    assert THREAD.exposed_by(reads) is None


def test_nothing_new_changes_nothing() -> None:
    thread = add_origins(THREAD, ("file:b",), 3)
    assert add_origins(thread, ("file:b",), 9) is thread
    assert add_origins(thread, (), 9) is thread
