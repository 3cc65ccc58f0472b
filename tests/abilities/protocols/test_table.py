"""Every odd reply of the tables is read as its row says; and none of them, cut anywhere, is run as something else."""

import re
from collections import Counter
from dataclasses import replace

import pytest

from greenroom.abilities.protocols import Acts, Nothing, NotRun, Read, write
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

ROWS = (
    *tool_call.ROWS,
    *xml_tool.ROWS,
    *send_message.ROWS,
    *edits.ROWS,
    *placing.ROWS,
    *several.ROWS,
    *arguments.ROWS,
    *near.ROWS,
    *cut.ROWS,
    *around.ROWS,
)
RUN = [row for row in ROWS if isinstance(row.wants, Runs)]


def called(read: Read) -> tuple[str, object] | None:
    """What is run, if anything is."""
    return (read.call.name, read.call.arguments) if isinstance(read, Acts) else None


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_reply_is_read_as_its_row_says(row: Row) -> None:
    found = row.read()
    match row.wants:
        case Runs(tool=tool, arguments=arguments) as wants:
            assert isinstance(found, Acts), str(found)
            assert (found.call.name, found.call.arguments, found.repaired) == (tool, arguments, wants.repaired)
            assert wants.note in " ".join(found.notes)
            assert bool(wants.note) == bool(found.notes)
            assert not wants.said or found.said == wants.said
        case Refuses(because=because, mended=mended):
            assert isinstance(found, NotRun), repr(found)
            assert [part for part in because if part not in found.why] == [], found.why
            assert bool(found.repaired) == mended, str(found)
        case Says(hint=hint):
            assert isinstance(found, Nothing), repr(found)
            assert hint in found.hint
            assert bool(hint) == bool(found.hint), found.hint
        case Withheld(because=because):
            assert not isinstance(found, Acts), repr(found)
            told = found.why if isinstance(found, NotRun) else found.hint
            assert told
            assert because in told


def test_there_are_enough_of_them_and_no_two_have_a_name() -> None:
    assert len(ROWS) >= 1900
    assert [name for name, times in Counter(row.name for row in ROWS).items() if times > 1] == []


@pytest.mark.parametrize("row", [row for row in ROWS if isinstance(row.wants, Refuses)], ids=lambda row: row.name)
def test_a_block_that_is_offered_is_run_when_it_comes_back(row: Row) -> None:
    found = row.read()
    assert isinstance(found, NotRun)
    assert not found.repaired or isinstance(row.read(found.repaired), Acts), found.repaired


@pytest.mark.parametrize("row", [row for row in ROWS if row.ended is not False], ids=lambda row: row.name)
def test_of_a_reply_that_was_cut_off_nothing_with_effects_is_run(row: Row) -> None:
    found = replace(row, ended=False).read()
    assert not isinstance(found, Acts) or found.call.name in row.pure
    assert not isinstance(found, NotRun) or not found.repaired


@pytest.mark.parametrize("row", RUN, ids=lambda row: row.name)
def test_what_is_run_reads_the_same_when_it_is_written_again(row: Row) -> None:
    found = row.read()
    assert isinstance(found, Acts)
    assert called(row.read(write(found.call, found.protocol))) == called(found)


@pytest.mark.parametrize("row", send_message.ROWS, ids=lambda row: row.name)
def test_no_word_of_a_message_gets_lost_in_what_is_offered(row: Row) -> None:
    found = row.read()
    if isinstance(found, NotRun) and found.repaired and "\x07" not in row.text:
        assert set(re.findall(r"\w+", row.text.lower())) <= set(re.findall(r"\w+", found.repaired.lower())) | {"2"}


@pytest.mark.parametrize("row", RUN, ids=lambda row: row.name)
def test_no_beginning_of_a_reply_is_run_as_something_else(row: Row) -> None:
    """Under `ended` the provider vouches for the message; under `first` a second block may be what is missing."""
    if row.ended or row.policy == "first":
        return
    whole = called(row.read())
    assert {at for at in range(len(row.text)) if called(row.read(row.text[:at])) not in (None, whole)} == set()
