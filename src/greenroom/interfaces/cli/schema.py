"""The one schema of everything printed as JSON: an event is its record in the log, with type, version and team."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from greenroom.app.runtime import Told
from greenroom.core.ports.codec import encode_event

VERSION: Final = 1
"""Of the schema. Fields may be added without a new one; a field at its default is left out, as in the log."""

Json = Mapping[str, object]


def event_fields(team: str, told: Told) -> dict[str, object]:
    """`{"type": "StepStarted", "version": 12, "team": "k3f…", "at": …, …}`."""
    encoded = encode_event(told.event)
    return {"type": encoded.type, "version": told.version, "team": team, **json.loads(encoded.data)}


def line(fields: Json) -> str:
    """One line of JSON; text stays readable."""
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
