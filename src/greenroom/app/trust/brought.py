"""What a workspace brings: files of strangers that would act in a person's name, once they are used."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.records import record


@record
class Brought:
    """One thing. `shown` is what a person reads before they agree, `digest` what they agree to: all of it."""

    kind: Literal["agent", "tool", "server", "callback", "check", "notes"]
    name: str
    shown: str
    digest: str
