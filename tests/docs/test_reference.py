"""The reference pages say what the code says."""

import inspect
import re
from pathlib import Path

import pytest

import greenroom
from greenroom.cli.exit_codes import Exit
from tools.reference import EXIT_CODES, FOLDER, PAGES, list_settings, list_types

SOURCE = Path(greenroom.__file__).parent
VARIABLE = re.compile(r"\bGREENROOM_[A-Z_]+\b")

# Reaches no line that other tests do not, and takes twice as long when it is measured.
pytestmark = pytest.mark.no_cover


def read_page(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["cli.md", "settings.md", "events.md"])
def test_a_page_is_what_the_code_says(name: str) -> None:
    assert read_page(name) == PAGES[name](), "run: python tools/reference.py"


def test_every_public_name_is_on_the_page_with_its_docstring() -> None:
    page = read_page("library.md")
    for name in set(greenroom.__all__) - list_types():
        assert f"### {name}\n" in page, f"{name} is missing: python tools/reference.py"
        value = getattr(greenroom, name)
        text = inspect.getdoc(value) if inspect.isclass(value) or inspect.isfunction(value) else ""
        assert (text or "") in page, f"{name} has another docstring: python tools/reference.py"


def test_only_public_names_are_on_the_page() -> None:
    lines = read_page("library.md").splitlines()
    headings = [line.removeprefix("### ") for line in lines if line[:4] == "### "]
    types = [line.split("`")[1] for line in lines if line.startswith("| `")]
    assert sorted(headings + types) == sorted(greenroom.__all__)
    assert set(types) == list_types()
    assert all(f"### {name}\n" in PAGES["library.md"]() for name in headings)


def test_every_setting_and_exit_code_is_described() -> None:
    settings = list(list_settings())
    assert len({setting.key for setting in settings}) == len(settings) > 40
    assert all(setting.meaning.endswith(".") for setting in settings)
    assert set(EXIT_CODES) == set(Exit)


def test_every_variable_that_the_code_reads_is_on_the_page() -> None:
    read = {name for path in SOURCE.rglob("*.py") for name in VARIABLE.findall(path.read_text("utf-8"))}
    assert read == set(VARIABLE.findall(read_page("settings.md")))
