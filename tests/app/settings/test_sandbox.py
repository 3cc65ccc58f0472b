"""What a person sets for the walls around commands."""

from __future__ import annotations

import pytest

from greenroom.app.settings import values
from greenroom.app.settings.layers import rows
from greenroom.app.settings.schema import SandboxSettings
from greenroom.app.settings.values import Unfit
from greenroom.core.base.errors import WorldFault
from tests.app.settings.places import Place


def test_hosts_are_read_as_they_are_meant(place: Place) -> None:
    place.user('[sandbox]\nhosts = ["PyPI.org", "*.pythonhosted.org", "git.example.org:8443"]\n')
    loaded = place.load(environ={"GREENROOM_SANDBOX": "off"})
    hosts = ("pypi.org", "*.pythonhosted.org", "git.example.org:8443")
    assert loaded.settings.sandbox == SandboxSettings(walls="off", hosts=hosts)
    shown = {row.key: row.value for row in rows(loaded)}
    assert shown["sandbox.hosts"] == "pypi.org, *.pythonhosted.org, git.example.org:8443"


@pytest.mark.parametrize("bad", [None, "pypi.org", ["https://pypi.org"], ["*.org"], [5], ["a b"], [""], ["127.1"]])
def test_what_is_no_host_is_unfit(bad: object) -> None:
    with pytest.raises(Unfit, match=r"pypi\.org"):
        values.hosts(bad)


def test_who_writes_it_as_a_word_is_told_how(place: Place) -> None:
    place.user('sandbox = "off"\n')
    with pytest.raises(WorldFault, match=r"`sandbox` is a table. Write \[sandbox\] and its keys below"):
        place.load()
