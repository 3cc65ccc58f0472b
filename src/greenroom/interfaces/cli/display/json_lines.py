"""What every answer in JSON has in common: one line each, the schema's version first, the result last."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, TextIO

from greenroom.core.base.text import UNSEEN

VERSION: Final = 1
"""Of the schema. Fields may be added without a new one; a field at its default is left out, as in the log."""

Json = Mapping[str, object]


def line(fields: Json) -> str:
    """One line of JSON; text stays readable. What a terminal obeys is spelt out: the same to a program."""
    return UNSEEN.sub(_spelt, json.dumps(fields, ensure_ascii=False, separators=(",", ":")))


def _spelt(sign: re.Match[str]) -> str:
    return json.dumps(sign[0])[1:-1]


def init(**fields: object) -> Json:
    """The first line of a stream."""
    return {"type": "init", "schema_version": VERSION, **fields}


def result(status: str, code: int, /, **fields: object) -> Json:
    """The last line of a stream, and the one object of `--output-format json`."""
    return {"type": "result", "status": status, "exit_code": int(code), **fields}


def write(stream: TextIO, fields: Json) -> None:
    """Print it."""
    stream.write(line(fields) + "\n")
    stream.flush()
