"""Every odd reply of the tables is read as its row says; and none of them, cut anywhere, is run as something else."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pytest

from greenroom.abilities.protocols.parse_result import BlockCall, BlockRejection, NoBlock, ParsedReply
from greenroom.abilities.protocols.text_calls import write
from tests.abilities.protocols.cases import (
    arguments,
    around,
    cut,
    edits,
    near,
    placing,
    send_message,
    several,
    tool_call,
    xml_tool,
)
from tests.abilities.protocols.house import Refuses, Row, Runs, Says, Withheld

TABLES = {
    "tool_call": tool_call.ROWS,
    "xml_tool": xml_tool.ROWS,
    "send_message": send_message.ROWS,
    "edits": edits.ROWS,
    "placing": placing.ROWS,
    "several": several.ROWS,
    "arguments": arguments.ROWS,
    "near": near.ROWS,
    "cut": cut.ROWS,
    "around": around.ROWS,
}
ROWS = [row for rows in TABLES.values() for row in rows]
of_each_table = pytest.mark.parametrize("rows", TABLES.values(), ids=TABLES)


def called(read: ParsedReply) -> tuple[str, object] | None:
    """What is run, if anything is."""
    return (read.call.name, read.call.arguments) if isinstance(read, BlockCall) else None


def every(rows: Iterable[Row], check: Callable[[Row], None]) -> None:
    """Each row is as it should be; those that are not are named all at once."""
    wrong = []
    for row in rows:
        try:
            check(row)
        except AssertionError as found:
            found.add_note(f"the row {row.name!r}")
            wrong.append(found)
    if wrong:
        raise ExceptionGroup("rows that are not as they should be", wrong)


def as_its_row_says(row: Row) -> None:
    found = row.read()
    match row.wants:
        case Runs(tool=tool, arguments=arguments) as wants:
            assert isinstance(found, BlockCall), str(found)
            assert (found.call.name, found.call.arguments, found.repaired) == (tool, arguments, wants.repaired)
            assert wants.note in " ".join(found.notes)
            assert bool(wants.note) == bool(found.notes)
            assert not wants.said or found.said == wants.said
        case Refuses(because=because, mended=mended):
            assert isinstance(found, BlockRejection), repr(found)
            assert [part for part in because if part not in found.why] == [], found.why
            assert bool(found.repaired) == mended, str(found)
        case Says(hint=hint):
            assert isinstance(found, NoBlock), repr(found)
            assert hint in found.hint
            assert bool(hint) == bool(found.hint), found.hint
        case Withheld(because=because):
            assert not isinstance(found, BlockCall), repr(found)
            told = found.why if isinstance(found, BlockRejection) else found.hint
            assert told
            assert because in told


@of_each_table
def test_every_reply_is_read_as_its_row_says(rows: Sequence[Row]) -> None:
    every(rows, as_its_row_says)


def test_no_two_rows_have_one_name() -> None:
    assert [name for name, times in Counter(row.name for row in ROWS).items() if times > 1] == []


def test_a_row_that_is_not_as_it_should_be_is_named_and_the_others_are_still_looked_at() -> None:
    looked = []

    def wrong_once(row: Row) -> None:
        looked.append(row)
        assert row is not ROWS[1]

    with pytest.raises(ExceptionGroup) as caught:
        every(ROWS[:3], wrong_once)
    assert [one.__notes__ for one in caught.value.exceptions] == [[f"the row {ROWS[1].name!r}"]]
    assert looked == ROWS[:3]


@of_each_table
def test_a_block_that_is_offered_is_run_when_it_comes_back(rows: Sequence[Row]) -> None:
    def comes_back(row: Row) -> None:
        found = row.read()
        assert isinstance(found, BlockRejection)
        assert not found.repaired or isinstance(row.read(found.repaired), BlockCall), found.repaired

    every((row for row in rows if isinstance(row.wants, Refuses)), comes_back)


@of_each_table
def test_of_a_reply_that_was_cut_off_nothing_with_effects_is_run(rows: Sequence[Row]) -> None:
    def cut_off(row: Row) -> None:
        found = replace(row, ended=False).read()
        assert not isinstance(found, BlockCall) or found.call.name in row.pure
        assert not isinstance(found, BlockRejection) or not found.repaired

    every((row for row in rows if row.ended is not False), cut_off)


@of_each_table
def test_what_is_run_reads_the_same_when_it_is_written_again(rows: Sequence[Row]) -> None:
    def written_again(row: Row) -> None:
        found = row.read()
        assert isinstance(found, BlockCall)
        assert called(row.read(write(found.call, found.protocol))) == called(found)

    every((row for row in rows if isinstance(row.wants, Runs)), written_again)


def test_no_word_of_a_message_gets_lost_in_what_is_offered() -> None:
    def all_there(row: Row) -> None:
        found = row.read()
        if isinstance(found, BlockRejection) and found.repaired and "\x07" not in row.text:
            assert set(re.findall(r"\w+", row.text.lower())) <= set(re.findall(r"\w+", found.repaired.lower())) | {"2"}

    every(send_message.ROWS, all_there)


@of_each_table
def test_no_beginning_of_a_reply_is_run_as_something_else(rows: Sequence[Row]) -> None:
    """Under `ended` the provider vouches for the message; under `first` a second block may be what is missing."""

    def cut_anywhere(row: Row) -> None:
        whole = called(row.read())
        assert {at for at in range(len(row.text)) if called(row.read(row.text[:at])) not in (None, whole)} == set()

    may_be_cut = (row for row in rows if isinstance(row.wants, Runs) and not row.ended and row.policy != "first")
    every(may_be_cut, cut_anywhere)
