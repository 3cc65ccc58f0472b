"""What a specialist reports at its end."""

from __future__ import annotations

import pytest

from greenroom.core.base.records import encode
from greenroom.teamwork.hand_in import build_report_schema, parse_report
from greenroom.teamwork.handoffs import read_protocols


def test_a_report_is_read_from_the_last_call() -> None:
    said = encode({"status": "done", "summary": "tax", "files": ["shop/tax.py"], "handoff": {"a": 1}}).decode()
    report = parse_report(said)
    assert (report.status, report.summary, report.files, report.handoff) == ("done", "tax", ("shop/tax.py",), {"a": 1})


@pytest.mark.parametrize("said", ["It is done.", "", '{"summary": 1}', '["done"]', "\ud800"])
def test_any_other_text_is_the_summary(said: str) -> None:
    report = parse_report(said)
    assert (report.status, report.summary, report.handoff) == ("done", said, None)


@pytest.mark.parametrize("protocol", [*read_protocols(), ""])
def test_the_last_call_describes_the_hand_off_but_does_not_require_it(protocol: str) -> None:
    schema = build_report_schema(protocol)
    assert schema["required"] == ["status", "summary"]
    assert (protocol in encode(schema).decode()) or not protocol
    assert ("handoff" in encode(schema).decode()) is bool(protocol)
