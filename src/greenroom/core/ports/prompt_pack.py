"""Prompt packs: jinja templates in `.md` files beside the code that fills them, a folder per language."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final, Protocol, cast

from greenroom.core.base.errors import Bug

DEFAULT_LANGUAGE: Final = "en"


class _Template(Protocol):
    def render(self, variables: Mapping[str, object], /) -> str:
        """Return the text with its variables filled in."""
        ...


class PromptPack:
    """The prompts of one package, by language and name. A missing language falls back to English."""

    def __init__(self, package: str) -> None:
        self._package: Final = package

    def render(self, language: str, name: str, variables: Mapping[str, object]) -> str:
        """Render a prompt, without surrounding empty lines."""
        return _load_template(self._package, self.choose_language(language), name).render(variables).strip()

    def choose_language(self, language: str) -> str:
        """Return the available language: `zh-CN` becomes `zh`."""
        short = language.lower().replace("_", "-").partition("-")[0]
        return short if short in self.list_languages() else DEFAULT_LANGUAGE

    def list_languages(self) -> tuple[str, ...]:
        """Return all languages of the pack."""
        return _list_languages(self._package)

    def list_names(self, language: str) -> tuple[str, ...]:
        """Return the names of all prompts in a language."""
        folder = files(self._package) / language
        return tuple(sorted(file.name.removesuffix(".md") for file in folder.iterdir() if file.name.endswith(".md")))

    def read_source(self, language: str, name: str) -> str:
        """Return the template's source."""
        return _read_source(self._package, language, name)


@cache
def _list_languages(package: str) -> tuple[str, ...]:
    return tuple(
        sorted(folder.name for folder in files(package).iterdir() if folder.is_dir() and len(folder.name) == 2)
    )


@cache
def _read_source(package: str, language: str, name: str) -> str:
    try:
        return (files(package) / language / f"{name}.md").read_text(encoding="utf-8")
    except FileNotFoundError:
        raise Bug(f"There is no prompt {name!r} in {language!r} in {package}.") from None


@cache
def _load_template(package: str, language: str, name: str) -> _Template:
    import jinja2 as jinja

    environment = jinja.Environment(undefined=jinja.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return cast("_Template", environment.from_string(_read_source(package, language, name)))
