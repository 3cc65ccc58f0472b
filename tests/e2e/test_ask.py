"""One question to a model, through the real door: the answer, what it costs, and all that may be in the way."""

import signal
from pathlib import Path

import pytest

from tests.e2e.provider import KEY, PRICED, QUICK, provider, reached, settings
from tests.e2e.terminal import Running, greenroom
from tests.e2e.test_terminal import on_a_terminal
from tests.fake_openai import Answer, FakeOpenAI, Fault, fault

BLUE = "Because [bold]light[/bold] scatters.\n\tBlue most of all."
USED = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}


def asked(fake: FakeOpenAI) -> list[str]:
    """The last thing that was said in each request."""
    found = []
    for seen in fake.requests:
        messages = seen.body["messages"]
        assert isinstance(messages, list)
        found.append(str(messages[-1]["content"]))
    return found


def test_the_answer_is_on_stdout_and_nothing_else(tmp_path: Path) -> None:
    with provider(Answer(text=BLUE)) as fake:
        ended = greenroom(tmp_path, "ask", "Why", "is the sky blue?", **reached(fake))
    assert (ended.code, ended.out) == (0, f"{BLUE}\n")
    assert "openai:gpt-5.5 · at most $5\n" in ended.err
    assert asked(fake) == ["Why is the sky blue?"]


@pytest.mark.parametrize("words", [(), ("-",)])
def test_a_question_may_be_piped(tmp_path: Path, words: tuple[str, ...]) -> None:
    with provider(Answer(text="Yes.")) as fake:
        ended = greenroom(tmp_path, "ask", "-q", *words, stdin="Is it?\nReally?\n", **reached(fake))
    assert (ended.code, ended.out, ended.err) == (0, "Yes.\n", "")
    assert asked(fake) == ["Is it?\nReally?"]


def test_a_terminal_sees_the_answer_as_it_comes_and_only_once(tmp_path: Path) -> None:
    thought = Answer(text="Blue \x1b[2J\x07is it.", reasoning="Hm, let me see.", pace=0.05)
    with provider(thought) as fake:
        seen = on_a_terminal(tmp_path, "ask", "Why?", **reached(fake))
        everything = on_a_terminal(tmp_path, "ask", "-v", "Why?", **reached(fake))
    assert seen.count("is it.") == 1
    assert "Blue [2Jis it." in seen, "a model does not steer the terminal"
    assert "Hm, " not in seen
    assert "Hm, " in everything
    assert everything.index("Hm, ") < everything.index("Blue [2J")


def test_what_was_cut_off_is_said_to_be_void_and_asked_again(tmp_path: Path) -> None:
    settings(tmp_path, QUICK)
    with provider([fault("rate_bare"), fault("reset_in_text"), Answer(text="All of it.")]) as fake:
        seen = on_a_terminal(tmp_path, "ask", "Why?", **reached(fake))
    assert "received too many requests" in seen
    assert "retrying" in seen
    assert "The text so far is void." in seen
    assert seen.count("All of it.") == 1


@pytest.mark.parametrize(
    "broken", [[fault("ended_in_text")] * 2, [Answer(text="The first half", finish="content_filter")]]
)
def test_an_answer_without_an_end_is_never_taken_as_whole(tmp_path: Path, broken: list[Fault | Answer]) -> None:
    settings(tmp_path, "[retry]\nattempts = 1\ndelay = 0.01\n")
    with provider([*broken, Answer(text="All of it.")]) as fake:
        ended = greenroom(tmp_path, "ask", "Why?", "--output-format", "json", **reached(fake))
        assert ended.code == 4
        assert (ended.json["status"], ended.json["code"], ended.json["answer"]) == ("provider", "incomplete", "")
        partial = str(ended.json["partial"])
        assert partial
        kept = greenroom(tmp_path, "events", "last", "--output-format", "stream-json").lines
        assert [event["partial"] for event in kept if event.get("partial")] == [partial]
        resumed = greenroom(tmp_path, "resume", "last", **reached(fake))
    assert (resumed.code, resumed.out) == (0, "All of it.\n")


def test_a_wrong_key_is_said_in_the_providers_words_and_mended_by_resuming(tmp_path: Path) -> None:
    with provider(Answer(text="Here I am.")) as fake:
        words = ("ask", "Who?", "-m", "openai:fake", "--max-cost", "none")
        wrong = greenroom(tmp_path, *words, **reached(fake, "sk-wrong-key-123456"))
        assert (wrong.code, wrong.out) == (4, "")
        assert (
            "Incorrect API key provided. Set a valid key in your environment, or store one with `greenroom init`."
            in wrong.err
        )
        assert wrong.err.splitlines()[-1].startswith("Fix that, then continue with: greenroom resume ")
        assert KEY not in wrong.err
        assert "sk-wrong" not in wrong.err
        unset = greenroom(tmp_path, "resume", "last", OPENAI_BASE_URL="https://api.openai.com/v1")
        assert unset.code == 3
        assert "There is no key for 'openai'." in unset.err
        right = greenroom(tmp_path, "resume", "last", **reached(fake))
    assert (right.code, right.out) == (0, "Here I am.\n")
    assert [seen.body["model"] for seen in fake.requests] == ["fake", "fake"], "resumed with the same model"


def test_a_model_without_a_price_is_refused_under_a_cap_with_what_to_do(tmp_path: Path) -> None:
    words = ("ask", "-m", "mine:thing", "Who?")
    settings(tmp_path, '[providers.mine]\nbase_url = "https://models.invalid/v1"\nkey_env = "MINE"\n')
    ended = greenroom(tmp_path, *words, MINE=KEY)
    assert ended.code == 3
    assert "The price of mine:thing is unknown" in ended.err
    assert "--max-cost none" in ended.err
    assert '[prices."mine:thing"]\ninput = 1.0\noutput = 4.0\n' in ended.err
    assert greenroom(tmp_path, "runs", "--output-format", "json").json["tasks"] == []


@pytest.mark.parametrize(
    ("words", "more", "code", "sentence"),
    [
        (("hi",), {}, 3, "No model is set, and no key was found"),
        (("hi",), {}, 3, "`greenroom demo` needs none"),
        (("-m", "gpt-5.5", "hi"), {"OPENAI_API_KEY": KEY}, 3, "Write `openai:gpt-5.5`."),
        (("-m", "opnai:gpt-5.5", "hi"), {"OPENAI_API_KEY": KEY}, 3, "Did you mean `openai`?"),
        (("-m", "deepseek:x", "hi"), {"OPENAI_API_KEY": KEY}, 3, "There is no key for 'deepseek'."),
        (("--max-cost", "dear", "hi"), {}, 2, "must be a number of dollars"),
        (("--max-time", "soon", "hi"), {}, 2, "must be a time like"),
        (("--max-tokens", "1.5", "hi"), {}, 2, "must be a whole number of tokens"),
        (("",), {"OPENAI_API_KEY": KEY}, 2, "There is no question."),
        ((), {"OPENAI_API_KEY": KEY}, 2, "There is no question."),
    ],
)
def test_what_cannot_be_asked_is_said_in_one_sentence(
    tmp_path: Path, words: tuple[str, ...], more: dict[str, str], code: int, sentence: str
) -> None:
    ended = greenroom(tmp_path, "ask", *words, stdin="", **more)
    assert ended.code == code
    assert sentence in ended.err
    assert ended.out == ""


def test_a_local_server_is_found_where_there_is_no_key(tmp_path: Path) -> None:
    with provider(Answer(text="Local."), api_key="") as fake:
        ended = greenroom(tmp_path, "ask", "Who?", OLLAMA_HOST=fake.base_url)
        assert (ended.code, ended.out) == (0, "Local.\n")
    assert "ollama:fake" in ended.err


def test_an_interrupted_answer_goes_on_and_is_counted(tmp_path: Path) -> None:
    settings(tmp_path, PRICED)
    slow = Answer(text="one two three four five six seven eight nine ten " * 20, pace=0.2)
    with provider([slow, Answer(text="Whole.", usage=USED)]) as fake:
        with Running(tmp_path, "ask", "Count.", **reached(fake)) as asking:
            fake.wait_for(in_flight=1)
            asking.send(signal.SIGINT)
            stopped = asking.end()
        assert stopped.code == 130
        assert "Stopped. Continue with: greenroom resume" in stopped.err
        ended = greenroom(tmp_path, "resume", "last", **reached(fake))
        assert (ended.code, ended.out) == (0, "Whole.\n")
    cost = greenroom(tmp_path, "cost")
    assert "Includes 1 estimated call: no believable bill came." in cost.err
    assert greenroom(tmp_path, "cost", "--output-format", "json").json["reserved_calls"] == 1


LIES = [
    {"prompt_tokens": 30, "completion_tokens": 100_000},
    {"prompt_tokens": 30, "completion_tokens": 100_000, "completion_tokens_details": {"reasoning_tokens": 99_000}},
    {"prompt_tokens": 20_000, "completion_tokens": 5},
    {"prompt_tokens": 30, "completion_tokens": 5, "cost": 99},
    {"prompt_tokens": -30, "completion_tokens": 5},
]


@pytest.mark.parametrize("usage", LIES)
def test_usage_that_cannot_be_true_is_estimated_and_the_person_is_told(
    tmp_path: Path, usage: dict[str, object]
) -> None:
    settings(tmp_path, PRICED)
    with provider(Answer(text="Yes.", usage=usage)) as fake:
        ended = greenroom(tmp_path, "ask", "--max-cost", "0.5", "Is it?", **reached(fake))
        told = greenroom(tmp_path, "ask", "--output-format", "stream-json", "Is it?", **reached(fake))
    assert ended.code == 0
    assert "✓ finished: at most " in ended.err
    assert "(estimated)" in ended.err
    assert ("which is impossible. The cost is estimated." in ended.err) == (usage["prompt_tokens"] != -30)
    *_, result = told.lines
    assert result["estimated_calls"] == 1
    assert isinstance(result["cost"], float)
    assert result["cost"] < 0.5
    assert '"estimated":1},"queued"' in told.out, "the event says it too"
    assert "Includes 2 estimated calls: no believable bill came." in greenroom(tmp_path, "cost").err


def test_a_charge_above_the_limit_is_said_and_not_ticked(tmp_path: Path) -> None:
    settings(tmp_path, PRICED)
    charged = {"prompt_tokens": 30, "completion_tokens": 5, "cost": 0.12}
    with provider(Answer(text="Yes.", usage=charged)) as fake:
        ended = greenroom(tmp_path, "ask", "--max-cost", "0.1", "Is it?", **reached(fake))
    assert ended.out == "Yes.\n"
    assert "! finished: 35 tokens, $0.1200" in ended.err
    assert "The provider counted more than it was asked for: the limit on money is exceeded." in ended.err


def test_a_key_in_a_question_and_in_what_is_piped_is_removed_and_said_once(tmp_path: Path) -> None:
    with provider(Answer(text="Yes.")) as fake:
        ended = greenroom(tmp_path, "ask", f"Is {KEY} mine?", stdin=f"key={KEY}\n", **reached(fake))
        shown = greenroom(tmp_path, "show", "last", "--output-format", "json", **reached(fake))
    (sent,) = asked(fake)
    assert (ended.code, "Is [secret] mine?" in sent, "key=[secret]" in sent, KEY in sent) == (0, True, True, False)
    assert ended.err.count("Your input held a key that Greenroom knows.") == 1
    assert "[secret] mine?" in shown.out
    assert not any(KEY.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.req("AF-39", "AF-40", "AF-41")
def test_text_and_reasoning_arrive_in_pieces_that_make_the_whole(tmp_path: Path) -> None:
    with provider(Answer(text="Tea is a plant.", reasoning="It has leaves.", chunk=4)) as fake:
        ended = greenroom(tmp_path, "ask", "--output-format", "stream-json", "What is tea?", **reached(fake))
    pieces = [line for line in ended.lines if line["type"] == "delta"]
    assert "".join(str(piece["text"]) for piece in pieces if "text" in piece) == "Tea is a plant."
    assert "".join(str(piece["reasoning"]) for piece in pieces if "reasoning" in piece) == "It has leaves."
    assert len(pieces) > 4
    assert ended.lines[-1]["answer"] == "Tea is a plant."
