"""Every odd reply of the tables is read as its row says; and none of them, cut anywhere, is run as something else."""

from collections import Counter

import pytest

from greenroom.abilities.protocols import Acts, Nothing, NotRun, Read
from tests.abilities.protocols.cases import edits, placing, send_message, several, tool_call, xml_tool
from tests.abilities.protocols.house import Refuses, Row, Runs, Says

ROWS = (*tool_call.ROWS, *xml_tool.ROWS, *send_message.ROWS, *edits.ROWS, *placing.ROWS, *several.ROWS)
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


def test_there_are_enough_of_them_and_no_two_have_a_name() -> None:
    assert len(ROWS) >= 220
    assert [name for name, times in Counter(row.name for row in ROWS).items() if times > 1] == []


@pytest.mark.parametrize("row", [row for row in ROWS if isinstance(row.wants, Refuses)], ids=lambda row: row.name)
def test_a_block_that_is_offered_is_run_when_it_comes_back(row: Row) -> None:
    found = row.read()
    assert isinstance(found, NotRun)
    assert not found.repaired or isinstance(row.read(found.repaired), Acts), found.repaired


@pytest.mark.parametrize("row", RUN, ids=lambda row: row.name)
def test_no_beginning_of_a_reply_is_run_as_something_else(row: Row) -> None:
    """Under `ended` the provider vouches for the message; under `first` a second block may be what is missing."""
    if row.ended or row.policy == "first":
        return
    whole = called(row.read())
    assert {at for at in range(len(row.text)) if called(row.read(row.text[:at])) not in (None, whole)} == set()
