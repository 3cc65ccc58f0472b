"""A report in JUnit's form, as pytest writes it: exact ids of all tests that ran."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from xml.etree.ElementTree import Element, ParseError, XMLParser

from greenroom.core.ports.checks import Word

FORBIDDEN: Final = ("<!DOCTYPE", "<!ENTITY")
"""What no report has, and what would make a parser do much work."""


def junit(text: str) -> dict[str, Word]:
    """Every test by its id; empty when it is no such report. Of a test that is told of twice the worse counts."""
    found: dict[str, Word] = {}
    if any(word in text for word in FORBIDDEN):
        return found
    cases = list(_cases(text))
    modules = {_module(file): file for file in (one.get("file", "") for one in cases) if file}
    for case in cases:
        name, word = _id(case, modules), _word(case)
        if found.get(name) != "failed":
            found[name] = word
    return found


def _cases(text: str) -> Iterator[Element]:
    parser = XMLParser()
    try:
        parser.feed(text)
        root = parser.close()
    except (ParseError, ValueError, RecursionError):
        return
    yield from root.iter("testcase")


def _word(case: Element) -> Word:
    tags = {child.tag for child in case}
    if tags & {"failure", "error"}:
        return "failed"
    return "skipped" if "skipped" in tags else "passed"


def _module(file: str) -> str:
    return file.removesuffix(".py").replace("\\", "/").replace("/", ".")


def _id(case: Element, modules: dict[str, str]) -> str:
    """As pytest is told to run it. An inherited test stands in another file than its class: then the longest known
    module is its file, and where none is known the id is only a name."""
    classes, name = case.get("classname", ""), case.get("name", "")
    if not classes:  # a file that could not be collected
        return modules.get(name, name)
    parts = classes.split(".")
    for count in range(len(parts), 0, -1):
        file = modules.get(".".join(parts[:count]))
        if file is not None:
            return "::".join((file, *parts[count:], name))
    return f"{classes}::{name}"
