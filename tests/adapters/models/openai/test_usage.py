"""Tokens, wherever a provider counts them and whatever it calls them."""

import pytest

from greenroom.adapters.models.openai.usage import find_believable_usage
from greenroom.core.ports.model import ChatMessage, Media, ModelCard, ModelRequest, Usage
from tests.adapters.models.asked import Played
from tests.adapters.models.openai.answers import JSON, body, delta, heard, sse
from tests.adapters.models.vendors.talk import PURPOSE


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 4}, Usage(input=9, output=4)),
        ({"input_tokens": 9, "output_tokens": 4}, Usage(input=9, output=4)),
        (
            {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 5}},
            Usage(input=9, output=4, cached=5),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 4, "prompt_cache_hit_tokens": 5},
            Usage(input=9, output=4, cached=5),
        ),
        ({"prompt_tokens": 9, "completion_tokens": 4, "cached_tokens": 5}, Usage(input=9, output=4, cached=5)),
        (
            {"prompt_tokens": 9, "completion_tokens": 4, "completion_tokens_details": {"reasoning_tokens": 3}},
            Usage(input=9, output=4, thought=3),
        ),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 4,
                "total_tokens": 20,
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            Usage(input=9, output=11, thought=7),
        ),
        ({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 20}, Usage(input=9, output=11)),
        (
            {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 7},
            Usage(input=110, output=4, cached=100, written=7),
        ),
        ({"prompt_tokens": 9, "completion_tokens": 4, "cost": 0.00012345}, Usage(input=9, output=4, money=124)),
        (
            {"prompt_tokens": 9, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 100}},
            Usage(input=9, output=105, thought=100),
        ),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 4,
                "cost": 0.001,
                "is_byok": True,
                "cost_details": {"upstream_inference_cost": 0.002},
            },
            Usage(input=9, output=4, money=3000),
        ),
        ({"prompt_tokens": 9.0, "completion_tokens": None, "cost": "x"}, Usage(input=9, output=0)),
        (  # a prefix that was read from the cache and written again is counted once
            {"prompt_tokens": 100, "completion_tokens": 4, "cached_tokens": 80, "cache_write_tokens": 60},
            Usage(input=100, output=4, cached=80, written=20),
        ),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 4,
                "total_tokens": 104,
                "prompt_tokens_details": {"cached_tokens": 120},
            },
            Usage(input=220, output=4, cached=120),
        ),
        (  # more than the input cannot be a part of it, whatever the total says
            {"prompt_tokens": 4, "completion_tokens": 5, "total_tokens": 9, "cache_read_input_tokens": 90_000},
            Usage(input=90_004, output=5, cached=90_000),
        ),
        (
            {"input_tokens": 100, "output_tokens": 5, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 60},
            Usage(input=220, output=5, cached=60, written=60),
        ),
        ({"prompt_tokens": 9, "completion_tokens": 4, "queue_time": -0.01}, Usage(input=9, output=4)),
        (  # cached tokens beside the input, and a total of all
            {
                "input_tokens": 3,
                "output_tokens": 4,
                "total_tokens": 114,
                "cache_read_input_tokens": 100,
                "cache_creation_input_tokens": 7,
            },
            Usage(input=110, output=4, cached=100, written=7),
        ),
    ],
)
def test_tokens_are_counted_under_many_names(usage: dict[str, object], expected: Usage) -> None:
    assert heard([body(content="Hi", usage=usage)], JSON).usage == expected
    assert heard([sse(delta(content="Hi"), delta("stop"), {"choices": [], "usage": usage})]).usage == expected


def test_usage_comes_in_the_choice_under_groqs_name_in_every_chunk_or_as_timings() -> None:
    told = {"prompt_tokens": 9, "completion_tokens": 4}
    end = delta("stop")
    in_choice = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": told}]}
    growing = [{**delta(content="H"), "usage": {"prompt_tokens": 9, "completion_tokens": n}} for n in (1, 2, 4)]
    timed = {**end, "timings": {"prompt_n": 7, "cache_n": 2, "predicted_n": 4}}
    for chunks in ([in_choice], [{**end, "x_groq": {"usage": told}}], [*growing, {**end, "usage": None}]):
        assert heard([sse(delta(content="Hi"), *chunks)]).usage == Usage(input=9, output=4)
    assert heard([sse(delta(content="Hi"), timed)]).usage == Usage(input=9, output=4, cached=2)


@pytest.mark.parametrize(
    "usage",
    [
        {},
        {"prompt_tokens": 0, "completion_tokens": 0},
        {"prompt_tokens": -1},
        {"prompt_tokens": True},
        {"prompt_tokens": "9"},
        [],
        7,
    ],
)
def test_what_is_no_count_is_no_usage(usage: object) -> None:
    assert heard([body(content="Hi", usage=usage)], JSON).usage is None


def test_counts_that_shrink_or_cannot_be_are_not_believed() -> None:
    good, zeros = {"prompt_tokens": 9, "completion_tokens": 4}, {"prompt_tokens": 0, "completion_tokens": 0}
    found = heard([sse(delta(content="Hi"), {"choices": [], "usage": good}, {"choices": [], "usage": zeros})])
    assert found.usage == Usage(input=9, output=4)
    silent = heard([sse(delta(content="Hi"), delta("stop"), {"choices": [], "usage": {"prompt_tokens": 9}})])
    assert silent.counted is None, "text of no tokens"


class Sold(Played):
    """A model of this price per token, in millionths of a dollar."""

    def __init__(self, rate: int | None) -> None:
        super().__init__(card=ModelCard(output=4096, window=100_000, images=True))
        self._rate = rate

    def price(self, read: int, written: int) -> int | None:
        return None if self._rate is None else self._rate * (read + written)


SENT = 1000
"""Bytes of the request of these tests. It allows 2000 tokens of output."""


def believes(usage: Usage, rate: int | None = 10, received: int = 20, images: int = 0) -> bool:
    pictures = (Media(media_type="image/png", data=b"x"),) * images
    message = ChatMessage(role="user", content="Hi", media=pictures)
    request = ModelRequest(purpose=PURPOSE, messages=(message,), max_output=2000)
    return find_believable_usage(usage, request, Sold(rate), sent=SENT, received=received) is not None


@pytest.mark.parametrize(
    ("usage", "received"),
    [
        (Usage(input=1200, output=2000), 20),
        (Usage(input=5000, output=2100), 20),
        (Usage(input=10, output=6000, thought=5000), 20),
        (Usage(input=10, output=6000), 20_000),
        (Usage(input=10, output=10, money=70_000), 20),
    ],
    ids=["at the maximum", "hidden instructions", "thoughts beside it", "a server without maximum", "with a fee"],
)
def test_usage_that_can_be_true_is_believed(usage: Usage, received: int) -> None:
    assert believes(usage, received=received)


@pytest.mark.parametrize(
    ("usage", "rate"),
    [
        (Usage(input=10, output=20_000), 10),
        (Usage(input=10, output=20_000, thought=19_000), 10),
        (Usage(input=20_000, output=10), 10),
        (Usage(input=10**14, output=10), None),
        (Usage(input=10, output=10, money=99_000_000), 10),
        (Usage(input=10, output=10, money=99_000_000), 0),
        (Usage(input=10, output=10, money=99_000_000), None),
    ],
)
def test_usage_that_cannot_be_true_is_dropped_with_a_warning(
    usage: Usage, rate: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    assert not believes(usage, rate)
    assert ["impossible" in record.getMessage() for record in caplog.records] == [True]


def test_images_count_beside_the_bytes_of_a_request() -> None:
    seen = Usage(input=15_000, output=10)
    assert believes(seen, images=2)
    assert not believes(seen)


def test_the_bytes_of_an_image_are_no_tokens() -> None:
    picture = Media(media_type="image/png", data=bytes(60_000))
    request = ModelRequest(
        purpose=PURPOSE, messages=(ChatMessage(role="user", content="Hi", media=(picture,)),), max_output=2000
    )

    def is_believed(tokens: int) -> bool:
        used = Usage(input=tokens, output=10)
        return find_believable_usage(used, request, Sold(10), sent=80_000 + SENT, received=20) is not None

    assert is_believed(16_000), "a large image of some models"
    assert not is_believed(60_000)
