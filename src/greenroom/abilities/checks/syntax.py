"""The syntax of files that were changed, for those that no check may look at: Python, JSON, TOML, YAML.

What a newer Python than ours, or a form of JSON with comments, would take is left to whoever asks the project's own.
"""

from __future__ import annotations

import ast
import json
import tomllib
import warnings
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import PurePosixPath
from typing import Final

from greenroom.core.base.records import record

LONGEST: Final = 2_000_000
COMMENTED: Final = ("tsconfig", "jsconfig", ".eslintrc", "devcontainer", "settings", "launch", "tasks", "deno")
"""Names of JSON files that have comments in them by custom."""


@record
class SyntaxFault:
    """A file that cannot be read as what it is called."""

    path: str
    line: int
    said: str

    def __str__(self) -> str:
        return f"Syntax error detected in {self.path}, line {self.line}: {self.said}"


def syntax_faults(files: Mapping[str, bytes], before: Mapping[str, bytes] | None = None) -> tuple[SyntaxFault, ...]:
    """Those of these files that are broken. One that was so `before` is not ours to judge."""
    old = before or {}
    found = (fault for path, content in sorted(files.items()) for fault in _faults(path, content))
    return tuple(one for one in found if one.path not in old or not any(_faults(one.path, old[one.path])))


def _faults(path: str, content: bytes) -> Iterator[SyntaxFault]:
    if len(content) > LONGEST:
        return
    name = PurePosixPath(path)
    try:
        match name.suffix.lower():
            case ".py" | ".pyi":
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # what the code is warned of is its own business
                    ast.parse(content, path)
            case ".json" if not name.name.startswith(COMMENTED):
                json.loads(content.decode("utf-8-sig"))
            case ".toml":
                tomllib.loads(content.decode("utf-8-sig"))
            case ".yaml" | ".yml" if b"{{" not in content and b"{%" not in content:
                _read_yaml(content)
            case _:
                return
    except SyntaxError as error:
        yield SyntaxFault(path=path, line=error.lineno or 1, said=error.msg)
    except json.JSONDecodeError as error:
        yield SyntaxFault(path=path, line=error.lineno, said=error.msg)
    except ValueError as error:  # TOML, YAML, what is no UTF-8, a null byte
        yield SyntaxFault(path=path, line=1, said=" ".join(str(error).split())[:300])
    except (RecursionError, MemoryError):
        return


def _read_yaml(content: bytes) -> None:
    """Its events only: a tag that nobody here knows is no fault."""
    yaml = import_module("yaml")
    try:
        for _ in yaml.parse(content):
            pass
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
