"""What the work has changed, as those who judge it get to see it."""

from __future__ import annotations

from greenroom.core.base.records import record


@record
class Changed:
    """A file that the work has changed; None where there was or is none."""

    path: str
    before: bytes | None = None
    after: bytes | None = None
