"""The one schema of events printed as JSON: an event is its record in the log, with type, version and team."""

from __future__ import annotations

import json

from greenroom.app.runtime import Told
from greenroom.core.ports.codec import encode_event


def event_fields(team: str, told: Told) -> dict[str, object]:
    """`{"type": "StepStarted", "version": 12, "team": "k3f…", "at": …, …}`."""
    encoded = encode_event(told.event)
    return {"type": encoded.type, "version": told.version, "team": team, **json.loads(encoded.data)}
