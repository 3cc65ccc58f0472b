"""What a person sets for the web, and that nobody else can."""

from __future__ import annotations

import pytest

from greenroom.app.settings import values
from greenroom.app.settings.layers import rows
from greenroom.app.settings.schema import WebSettings
from greenroom.app.settings.values import Unfit
from greenroom.core.base.errors import WorldFault
from tests.app.settings.places import Place

OWN = '[web]\nsearch = "searxng"\nsearxng_url = "http://localhost:8888/"\nlocal = ["LocalHost:8000"]\nports = [8443]\n'


def test_a_person_says_who_is_asked_and_what_is_reached(place: Place) -> None:
    assert place.load().settings.web == WebSettings()
    place.user(OWN)
    loaded = place.load()
    assert loaded.settings.web == WebSettings(
        search="searxng", searxng_url="http://localhost:8888", local=("localhost:8000",), ports=(8443,)
    )
    shown = {row.key: row.value for row in rows(loaded)}
    assert (shown["web.search"], shown["web.local"], shown["web.ports"]) == ("searxng", "localhost:8000", "8443")


@pytest.mark.parametrize("layer", ["shared", "local"])
def test_a_project_says_nothing_of_it(place: Place, layer: str) -> None:
    path = getattr(place, layer)('[web]\nlocal = ["169.254.169.254:80"]\n')
    with pytest.raises(WorldFault, match=r"a project may not set `web`, because it decides who reads") as raised:
        place.load()
    assert str(raised.value).startswith(str(path))


@pytest.mark.parametrize("bad", [None, "localhost:80", ["localhost"], ["127.1:80"], [5], ["a b:80"], [""]])
def test_what_is_no_host_with_its_port_is_unfit(bad: object) -> None:
    with pytest.raises(Unfit, match="localhost:8000"):
        values.places(bad)


@pytest.mark.parametrize("bad", [None, 80, [0], [70000], ["80"], [True]])
def test_what_is_no_port_is_unfit(bad: object) -> None:
    with pytest.raises(Unfit, match="8443"):
        values.ports(bad)
