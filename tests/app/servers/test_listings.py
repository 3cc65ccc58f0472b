"""What servers listed when a person looked at them, in one file of the person's."""

from __future__ import annotations

import stat

import pytest

from greenroom.adapters.mcp.offers import Listed
from greenroom.adapters.mcp.pins import changed
from greenroom.app import mcp_servers as module
from greenroom.app.mcp_servers import Found, Listings, own_listings
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve
from tests.app.servers.places import Place

SCHEMA = {"type": "object", "properties": {"n": {"type": "number", "maximum": 1.5, "default": None}}}
ECHO = Listed(name="echo", description="Says \u200bit.", schema=SCHEMA, read_only=True)


@pytest.fixture(name="found")
def _found(place: Place) -> Found:
    return place.own("db")


def test_what_is_kept_is_what_was_listed(place: Place, found: Found) -> None:
    own_listings().keep(found, (ECHO,))
    known = own_listings().of(found)
    assert known is not None
    assert known.listed == (ECHO,)
    assert changed(known.agreed, (ECHO,)) == ()
    file = place.config / "mcp.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_it_is_bound_to_the_settings_of_the_server(found: Found) -> None:
    own_listings().keep(found, (ECHO,))
    other = evolve(found, server=evolve(found.server, args=("--evil",)))
    assert own_listings().of(other) is None
    assert own_listings().latest(other) is not None


def test_the_same_words_in_another_workspace_are_another_server(found: Found) -> None:
    one, other = evolve(found, where="/a"), evolve(found, where="/b")
    own_listings().keep(one, (ECHO,))
    assert own_listings().of(other) is None
    assert own_listings().of(found) is None


def test_what_is_kept_later_counts_and_what_is_forgotten_is_gone(found: Found) -> None:
    own_listings().keep(found, (ECHO,))
    own_listings().keep(found, ())
    known = own_listings().of(found)
    assert known is not None
    assert known.listed == ()
    own_listings().forget(found)
    assert own_listings().of(found) is None
    own_listings().forget(found)


def test_a_file_that_cannot_be_used_is_said(place: Place, found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    file = place.config / "mcp.json"
    file.write_text("{")
    with pytest.raises(WorldFault, match="is not as it was written"):
        own_listings().of(found)
    monkeypatch.setattr(module, "LONGEST_LISTINGS", 0)
    with pytest.raises(WorldFault, match=r"is too large. Delete it"):
        own_listings().of(found)
    with pytest.raises(WorldFault, match="cannot be read"):
        Listings(file / "below").of(found)
    with pytest.raises(WorldFault, match="cannot be written: Not a directory"):
        Listings(file / "below" / "mcp.json").keep(found, (ECHO,))


def test_a_server_that_says_too_much_is_not_kept(found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 100)
    with pytest.raises(WorldFault, match="says more than 0 MB about its tools"):
        own_listings().keep(found, (ECHO,))
