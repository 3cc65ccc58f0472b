"""Tests of which a few cases represent all."""

import pytest

from tests.sampling import sampled


def test_a_case_that_is_always_to_run_is_one_of_the_cases() -> None:
    assert sampled(("a", "b"), ("b",)) == [pytest.param("a", marks=pytest.mark.prove), "b"]
    with pytest.raises(AssertionError, match="among the cases"):
        sampled(("a", "b"), ("b", "misspelt"))
