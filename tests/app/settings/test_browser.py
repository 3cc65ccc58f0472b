"""What a person sets for the browser, and that nobody else can."""

from __future__ import annotations

import pytest

from greenroom.app.settings.schema import BrowserSettings
from greenroom.core.base.errors import WorldFault
from tests.app.settings.places import Place

OWN = """[browser]
program = "/usr/bin/chromium"
headless = true
steps = 20
seconds = "5m"
tokens = 100000
hosts = ["*.CDN.example"]
"""


def test_a_person_says_which_browser_and_what_it_may(place: Place) -> None:
    assert place.load().settings.browser == BrowserSettings()
    place.user(OWN)
    assert place.load().settings.browser == BrowserSettings(
        program="/usr/bin/chromium", headless=True, steps=20, seconds=300, tokens=100_000, hosts=("*.cdn.example",)
    )


@pytest.mark.parametrize("layer", ["shared", "local"])
def test_a_project_says_nothing_of_it(place: Place, layer: str) -> None:
    path = getattr(place, layer)('[browser]\nprogram = "./chromium"\n')
    with pytest.raises(WorldFault, match="a project may not set `browser`, because it decides which program") as raised:
        place.load()
    assert str(raised.value).startswith(str(path))
