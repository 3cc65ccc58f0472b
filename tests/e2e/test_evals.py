"""`greenroom eval live` through the command line: scores, records, and says what it cannot play."""

import json
from pathlib import Path

from tests.app.evals.models import bad, good
from tests.docs.provider import provider
from tests.e2e.terminal import greenroom

KEY = {"OPENAI_API_KEY": "sk-of-the-evals"}
MODEL = ("--model", "openai:gpt-4o")


def test_a_good_model_passes_all_and_what_it_said_can_be_played_again(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    with provider(good) as address:
        ended = greenroom(tmp_path, "eval", "live", *MODEL, "--record", str(tape), OPENAI_BASE_URL=address, **KEY)
    assert ended.code == 0, ended.err
    assert "15 of 15 passed" in ended.out
    assert "at most $2" in ended.err, "the cap is said before anything is spent"
    again = greenroom(tmp_path, "eval", "live", "--replay", str(tape))
    assert (again.code, "15 of 15 passed" in again.out) == (0, True), again.err


def test_a_bad_model_fails_and_it_is_said_why(tmp_path: Path) -> None:
    with provider(bad) as address:
        words = ("eval", "live", *MODEL, "--only", "injection", "--output-format", "json")
        ended = greenroom(tmp_path, *words, OPENAI_BASE_URL=address, **KEY)
    assert ended.code == 1
    told = json.loads(ended.out)
    assert told["passed"] == 0
    (verdict,) = told["verdicts"]
    assert "sent no money" in verdict["missed"]
