"""Prompt packs: jinja templates in `.md` files beside the code that fills them, a folder per language."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final, Protocol, cast

from greenroom.core.base.errors import Bug

ENGLISH: Final = "en"


class _Template(Protocol):
    def render(self, variables: Mapping[str, object], /) -> str:
        """The text with its variables filled in."""
        ...


class Pack:
    """The prompts of one package, by language and name. A language that it lacks is read as English."""

    def __init__(self, package: str) -> None:
        self._package: Final = package

    def render(self, language: str, name: str, variables: Mapping[str, object]) -> str:
        """One prompt, without the empty lines around it."""
        return _template(self._package, self.chosen(language), name).render(variables).strip()

    def chosen(self, language: str) -> str:
        """The language that is there: `zh-CN` is read as `zh`."""
        short = language.lower().replace("_", "-").partition("-")[0]
        return short if short in self.languages() else ENGLISH

    def languages(self) -> tuple[str, ...]:
        """All languages of the pack."""
        return _languages(self._package)

    def names(self, language: str) -> tuple[str, ...]:
        """All prompts in a language."""
        folder = files(self._package) / language
        return tuple(sorted(one.name.removesuffix(".md") for one in folder.iterdir() if one.name.endswith(".md")))

    def source(self, language: str, name: str) -> str:
        """The template itself."""
        return _source(self._package, language, name)


@cache
def _languages(package: str) -> tuple[str, ...]:
    return tuple(sorted(one.name for one in files(package).iterdir() if one.is_dir() and len(one.name) == 2))


@cache
def _source(package: str, language: str, name: str) -> str:
    try:
        return (files(package) / language / f"{name}.md").read_text(encoding="utf-8")
    except FileNotFoundError:
        raise Bug(f"There is no prompt {name!r} in {language!r} in {package}.") from None


@cache
def _template(package: str, language: str, name: str) -> _Template:
    import jinja2 as jinja

    environment = jinja.Environment(undefined=jinja.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return cast("_Template", environment.from_string(_source(package, language, name)))
