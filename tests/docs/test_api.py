"""The page of public names tells of all of them, in the words of the code."""

import inspect
from pathlib import Path

import pytest

import greenroom
from tools.api import PAGE, text

# Reaches no line that other tests do not, and to be measured takes it twice as long.
pytestmark = pytest.mark.no_cover


def test_every_public_name_is_on_the_page_with_its_docstring() -> None:
    page = Path(PAGE).read_text(encoding="utf-8")
    for name in greenroom.__all__:
        assert f"### {name}\n" in page, f"{name} is missing: python tools/api.py"
        one = getattr(greenroom, name)
        told = inspect.getdoc(one) if inspect.isclass(one) or inspect.isfunction(one) else ""
        assert (told or "") in page, f"{name} is told of in other words: python tools/api.py"


def test_nothing_is_on_the_page_that_is_not_public() -> None:
    headings = [
        line.removeprefix("### ") for line in Path(PAGE).read_text(encoding="utf-8").splitlines() if line[:4] == "### "
    ]
    assert sorted(headings) == sorted(greenroom.__all__)
    assert all(f"### {name}\n" in text() for name in headings)
