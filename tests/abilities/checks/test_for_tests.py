"""Modules among the sources that are made for tests, and sources that only sound like it."""

from __future__ import annotations

import pytest

from greenroom.abilities.checks.changed import Changed
from greenroom.abilities.checks.for_tests import made_for_tests
from greenroom.abilities.checks.meddling import meddled


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("testing_utils.py", ""),
        ("src/app/testing/fakes.py", ""),
        ("src/customAssertions.ts", ""),
        ("support.py", "import pytest\n"),
        ("support.py", "from unittest.mock import patch\n"),
        ("support.py", "def assert_same(a, b):\n    assert a == b\n"),
        ("lib/support.js", "const { expect } = require('chai')\n"),
        ("src/support.ts", "import { expect } from 'vitest'\n"),
        ("support.go", 'import (\n\t"testing"\n)\n'),
        ("src/main/java/Support.java", "import static org.junit.Assert.*;\n"),
        ("lib/support.rb", "require 'rspec/expectations'\n"),
    ],
)
def test_what_says_that_it_is_for_tests_is_a_judge_that_may_be_the_work(path: str, content: str) -> None:
    before = f"{content}x\n".encode()
    assert made_for_tests(path, before)
    (one,) = meddled([Changed(path=path, before=before, after=None)])
    assert (one.doubtful, one.said) == (True, f"{path}, made for tests, was deleted.")
    assert not meddled([Changed(path=path, before=None, after=before)])


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("latest.py", ""),
        ("inspection.py", ""),
        ("checkout.py", "def pay(x):\n    assert x > 0\n"),
        ("app.py", "raise AssertionError('unreachable')\ndef assert_never(x): ...\n"),
        ("contest/main.js", "const MODE = 'testing'\n"),
        ("docs/testing.md", "import pytest\n"),
    ],
)
def test_sources_with_an_assert_or_a_name_that_only_sounds_like_it_are_none(path: str, content: str) -> None:
    assert not made_for_tests(path, content.encode())
