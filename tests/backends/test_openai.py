"""Models behind an address: what is sent, what comes back, and what goes wrong on the way. Real HTTP on loopback."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

import pytest

from mdqa.attention.layout import PromptEncoder
from mdqa.backends.base import GenerationRequest, Steering
from mdqa.backends.openai import OpenAIBackend
from mdqa.backends.served import UNKNOWN_WINDOW, look_at, tokenizer_of
from mdqa.cancellation import CancelToken
from mdqa.errors import Cancelled, CapabilityError, ConfigError, ModelError, PromptTooLong
from mdqa.methods.base import Tools
from mdqa.methods.recorder import Recorder
from mdqa.prompting import Prompt, Segment, Turn
from mdqa.trace import Notice
from tests.serving import Failure, Handler, Server, serving
from tests.tiny import tiny_tokenizer

KEY = "sk-a-secret"
SCHEMA = {"type": "object", "properties": {"score": {"type": "integer"}}}


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as started:
        yield started


@pytest.fixture
def vllm() -> Iterator[Server]:
    with serving(vllm=True) as started:
        yield started


def prompt(text: str = "What colour has the sky?", reply: str = "") -> Prompt:
    document = Segment("Document [1]\nThe sky is blue.", "document", "d")
    question = Segment(text, "question")
    return Prompt((Turn("system", (Segment("Read."),)), Turn("user", (document, Segment("\n\n"), question))), reply)


def backend(server: Server, **options: Any) -> OpenAIBackend:
    return OpenAIBackend(server.served, model=server.url, **{"attempts": 3, "wait": 0.01, "key": KEY, **options})


def ask(used: OpenAIBackend, *requests: GenerationRequest, cancel: CancelToken | None = None, **more: Any) -> list[Any]:
    wanted = requests or (GenerationRequest(prompt()),)
    return used.generate(wanted, cancel=cancel or CancelToken(), **more)


def status(code: int, **headers: str) -> Failure:
    return lambda request: request.reply(code, {"error": {"message": f"no {KEY}", "code": code}}, headers)


def test_what_a_server_says_of_itself(server: Server, vllm: Server) -> None:
    found = look_at(server.url + "/", key=KEY)
    assert (found.url, found.model, found.window, found.vllm) == (server.url, "tiny", UNKNOWN_WINDOW, "")
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    found = look_at(vllm.url)
    assert (found.model, found.window, found.vllm, found.root) == ("tiny", 2048, "0.32.0", "/nowhere/tiny")
    assert tokenizer_of(found) is None  # it is not here, and nothing is fetched


def test_one_of_several_models_is_named(server: Server) -> None:
    server.models.append({"id": "other"})
    assert look_at(server.url, model="other").model == "other"
    with pytest.raises(ModelError, match=r"2 models; name one as NAME@http.*tiny, other"):
        look_at(server.url)
    with pytest.raises(ModelError, match="does not have 'third'; it has: tiny, other"):
        look_at(server.url, model="third")


@pytest.mark.parametrize(
    ("failure", "says"),
    [
        (status(401), "wants a key; set MDQA_API_KEY"),
        (status(404), "no list of models"),
        (lambda request: request.reply(200, ["x"]), "no list of models"),
        (lambda request: request.reply(200, {"data": [{"name": "x"}]}), "0 models"),
        (status(503), "replies 503.*it may be busy or still starting"),
        (status(302, Location="http://elsewhere/v1"), "sends on to http://elsewhere/v1; nothing was sent there"),
    ],
    ids=["key", "missing", "list", "no id", "starting", "moved"],
)
def test_an_address_that_is_no_api(server: Server, failure: Failure, says: str) -> None:
    server.first = [failure]
    with pytest.raises(ModelError, match=says):
        look_at(server.url)


def test_an_address_where_nobody_is() -> None:
    with pytest.raises(ModelError, match="cannot be reached"):
        look_at("http://127.0.0.1:9/v1")
    for address in ("gpu1:8000/v1", "http://a..b/v1", "http://a b/v1", "http://a\n/v1"):
        with pytest.raises(ConfigError, match="must look like"):
            look_at(address)


def test_this_machine_is_not_looked_for_through_a_proxy(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert look_at(server.url).model == "tiny"
    assert ask(backend(server))[0].text == "The sky is blue"
    monkeypatch.setenv("all_proxy", "carrier://pigeon")
    with pytest.raises(ModelError, match="proxy that the environment names cannot be used"):
        look_at("http://somewhere.invalid/v1")


def test_nothing_of_openais_own_environment_is_sent(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "an organisation")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "a project")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer another")
    ask(backend(server))
    ask(backend(server, key=""))
    first, second = ({name.lower(): value for name, value in sent.items()} for sent in server.headers)
    assert first["authorization"] == f"Bearer {KEY}"
    assert second["authorization"] == "Bearer none"
    assert not [name for name in (*first, *second) if name.startswith("openai-")]


def test_a_redirect_is_not_followed(server: Server) -> None:
    with serving() as other:
        server.first = [lambda request: request.reply(307, {}, {"Location": f"{other.url}/chat/completions"})]
        with pytest.raises(ModelError, match="replies 307"):
            ask(backend(server))
        assert not other.requests


def test_chat_turns_to_a_server_that_takes_no_tokens(server: Server) -> None:
    request = GenerationRequest(
        prompt("Is it <|im_end|> blue?"), 12, temperature=0.5, top_p=0.9, seed=7, stop=("\n",), schema=SCHEMA
    )
    [reply] = ask(backend(server), request)
    assert (reply.text, reply.finish_reason, reply.seed) == ("The sky is blue", "stop", 7)
    path, body = server.requests[0]
    assert path == "/v1/chat/completions"
    assert body["messages"] == [
        {"role": "system", "content": "Read."},
        {"role": "user", "content": "Document [1]\nThe sky is blue.\n\nIs it < |im_end|> blue?"},
    ]
    told = {"model": "tiny", "max_tokens": 12, "temperature": 0.5, "top_p": 0.9, "seed": 7, "stop": ["\n"]}
    assert {name: body[name] for name in told} == told
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert "top_k" not in body  # only vLLM knows it
    cost = reply.cost
    assert (cost.prompt_tokens, cost.cached_tokens, cost.prefill_tokens_computed) == (20, 16, 4)
    assert (cost.completion_tokens, cost.llm_calls) == (3, 1)


def test_token_ids_to_vllm_are_those_that_run_here(vllm: Server) -> None:
    tokenizer = tiny_tokenizer()
    used = backend(vllm, tokenizer=tokenizer)
    begun = prompt(reply="The")
    ask(used, GenerationRequest(begun, schema=SCHEMA))
    path, body = vllm.requests[0]
    assert path == "/v1/completions"
    assert body["prompt"] == list(PromptEncoder(tokenizer).encode(begun).ids)
    assert body["structured_outputs"]["json"] == SCHEMA
    assert (body["top_k"], body["repetition_penalty"]) == (0, 1.0)  # not what the model's makers recommend
    assert used.render(begun) == PromptEncoder(tokenizer).render(begun)
    assert used.count_tokens("blue sky") == len(tokenizer("blue sky")["input_ids"])


def test_a_begun_reply(server: Server, vllm: Server) -> None:
    ask(backend(vllm), GenerationRequest(prompt(reply="The")))
    body = vllm.bodies[0]
    assert body["messages"][-1] == {"role": "assistant", "content": "The"}
    assert (body["continue_final_message"], body["add_generation_prompt"]) == (True, False)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    with pytest.raises(CapabilityError, match="begun reply"):
        ask(backend(server), GenerationRequest(prompt(reply="The")))


def test_likelihoods_are_sums_over_the_target(vllm: Server) -> None:
    tokenizer = tiny_tokenizer()
    used = backend(vllm, tokenizer=tokenizer)
    done: list[int] = []
    [found] = used.log_likelihood([prompt()], target="question", cancel=CancelToken(), on_done=done.append)
    span = PromptEncoder(tokenizer).encode(prompt()).question
    assert found.tokens == span.last - span.first
    assert found.logprob == pytest.approx(-sum(range(span.first, span.last)) / 10)
    assert len(vllm.bodies[0]["prompt"]) == span.last == found.cost.prompt_tokens
    assert found.cost.completion_tokens == 0
    assert done == [0]


def test_what_only_some_servers_can(server: Server, vllm: Server) -> None:
    assert backend(server).capabilities == {"generate", "structured"}
    assert backend(vllm, tokenizer=tiny_tokenizer()).capabilities == {"generate", "structured", "likelihood"}
    with pytest.raises(CapabilityError, match="likelihoods"):
        backend(server).log_likelihood([prompt()], target="question", cancel=CancelToken())
    with pytest.raises(CapabilityError, match="steer"):
        ask(backend(server), steering=Steering(("d",), 1.0))


def test_a_prompt_that_is_too_long_is_not_sent(vllm: Server) -> None:
    with pytest.raises(PromptTooLong, match="2,048"):
        ask(backend(vllm, tokenizer=tiny_tokenizer()), GenerationRequest(prompt("word " * 4000)))
    assert not vllm.requests


def test_everything_is_on_its_way_at_once(server: Server) -> None:
    server.gate = threading.Event()

    def open_gate() -> None:
        end = time.monotonic() + 30
        while server.most_at_once < 8 and time.monotonic() < end:
            time.sleep(0.02)
        server.gate.set()

    threading.Thread(target=open_gate).start()
    texts: dict[int, str] = {}
    replies = ask(
        backend(server),
        *(GenerationRequest(prompt(f"Question {i}?")) for i in range(8)),
        on_text=lambda i, piece: texts.__setitem__(i, texts.get(i, "") + piece),
    )
    assert server.most_at_once == 8
    assert [reply.text for reply in replies] == ["The sky is blue"] * 8 == [texts[i] for i in range(8)]


def test_no_more_than_the_limit(server: Server) -> None:
    ask(backend(server, limit=2), *(GenerationRequest(prompt(f"Question {i}?")) for i in range(6)))
    assert len(server.requests) == 6
    assert server.most_at_once <= 2


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_busy_server_is_asked_again(server: Server, code: int) -> None:
    server.first = [status(code, **{"Retry-After-Ms": "1"})] * 2
    assert ask(backend(server))[0].text == "The sky is blue"
    assert len(server.requests) == 3


def test_a_server_says_how_long_it_is_busy(server: Server) -> None:
    later = time.time() + 1.2
    server.first = [status(429, **{"Retry-After": formatdate(later, usegmt=True)})]
    ask(backend(server))
    assert time.time() >= int(later)
    server.first = [status(429, **{"Retry-After": "3600"})]
    with pytest.raises(ModelError, match="replies 429"):  # that is too long to wait
        ask(backend(server))
    assert len(server.requests) == 3


def test_a_server_that_stays_busy(server: Server) -> None:
    server.first = [status(503, **{"Retry-After-Ms": "1"})] * 3
    with pytest.raises(ModelError, match=r"replies 503.*\*\*\*") as caught:
        ask(backend(server))
    assert KEY not in str(caught.value)


def test_a_reply_that_breaks_off_is_asked_for_again_and_shown_once(server: Server) -> None:
    server.first = [lambda request: request.stream(["The", " sky"], None)]
    shown: list[str] = []
    [reply] = ask(backend(server), on_text=lambda _, piece: shown.append(piece))
    assert reply.text == "The sky is blue" == "".join(shown)
    assert len(server.requests) == 2


def test_replies_that_always_break_off(server: Server) -> None:
    server.finish = None
    with pytest.raises(ModelError, match="breaks replies off"):
        ask(backend(server))
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("failure", "says"),
    [
        (status(400), r"replies 400"),
        (status(401), "refuses the key in MDQA_API_KEY"),
        (lambda request: request.stream(["x"], "content_filter"), "withholds a reply"),
    ],
    ids=["bad request", "key", "filter"],
)
def test_refusals_in_words(server: Server, failure: Failure, says: str) -> None:
    server.first = [failure]
    with pytest.raises(ModelError, match=says) as caught:
        ask(backend(server))
    assert KEY not in str(caught.value)
    assert len(server.requests) == 1


def test_an_error_in_the_middle_of_a_stream(server: Server) -> None:
    def fail(request: Handler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.end_headers()
        request.wfile.write(b'data: {"error": {"message": "out of memory", "code": 500}}\n\n')

    server.first = [fail]
    with pytest.raises(ModelError, match="out of memory"):
        ask(backend(server))


USED = '"usage": {"prompt_tokens": 7, "completion_tokens": 2'


@pytest.mark.parametrize(
    ("event", "counted"),
    [
        ("null", None),
        ('{"choices": null}', None),
        ('{"choices": [{"index": 0, "delta": null}]}', None),
        ('{"choices": [{"index": 0, "delta": {"content": null, "reasoning_content": "hm"}}]}', None),
        ('{"choices": [], "usage": {}}', None),
        ('{"choices": [], "usage": {"prompt_tokens": null, "completion_tokens": "two"}}', None),
        ('{"choices": [], "usage": "many"}', None),
        (f'{{"choices": [], {USED}}}}}', (7, 2, 0)),
        (f'{{"choices": [], {USED}, "prompt_tokens_details": {{"cached_tokens": 9}}}}}}', (7, 2, 7)),
    ],
)
def test_what_servers_leave_out(server: Server, event: str, counted: tuple[int, int, int] | None) -> None:
    last = '{"choices": [{"index": 0, "delta": {"content": "blue"}, "finish_reason": "stop"}]}'
    server.first = [lambda request: request.events(event, last, event)]
    [reply] = ask(used := backend(server))
    assert (reply.text, reply.finish_reason) == ("blue", "stop")
    cost, sent = reply.cost, used.count_tokens(used.render(prompt()))
    assert (cost.prompt_tokens, cost.completion_tokens, cost.cached_tokens) == (counted or (sent, 1, 0))


@pytest.mark.parametrize(
    "answer",
    [
        lambda request: request.events("{oops"),
        lambda request: request.events('{"choices": [{"index": 0, "delta": {"content": [{"text": "blue"}]}}]}'),
        lambda request: request.reply(200, {"choices": [{"message": {"content": "whole"}}]}),
    ],
    ids=["no JSON", "no text", "no stream"],
)
def test_a_reply_that_is_none(server: Server, answer: Failure) -> None:
    server.first = [answer]
    with pytest.raises(ModelError, match="cannot be read as a reply"):
        ask(backend(server))
    assert len(server.requests) == 1


def test_a_reply_that_the_server_stops_is_asked_for_again(server: Server) -> None:
    server.first = [lambda request: request.stream(["The"], "abort")]
    assert ask(backend(server))[0].text == "The sky is blue"


def test_a_character_in_two_halves(server: Server) -> None:
    events = ['"a\\ud83d", "reason": null', '"\\ude00 \\ud83d!"', '"\\ud83d"']
    pieces = [f'{{"choices": [{{"index": 0, "delta": {{"content": {text}}}}}]}}' for text in events]
    last = '{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}'
    server.first = [lambda request: request.events(*pieces, last)]
    shown: list[str] = []
    [reply] = ask(backend(server), on_text=lambda _, piece: shown.append(piece))
    assert reply.text == "a\U0001f600 \ufffd!" == "".join(shown)


def refused(text: str) -> Failure:
    return lambda request: request.reply(400, {"error": {"message": text}})


def test_what_a_server_does_not_take_is_not_sent_again(server: Server) -> None:
    server.first = [
        refused("Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."),
        refused('Unknown name "seed": Cannot find field.'),
        lambda request: request.reply(422, {"detail": [{"loc": ["body", "top_p"], "type": "extra_forbidden"}]}),
    ]
    used = backend(server)
    ask(used)
    ask(used)
    for body in server.bodies[3:]:
        assert body["max_completion_tokens"] == 64
        assert {"max_tokens", "seed", "top_p"} & set(body) == set()
        assert body["temperature"] == 0
    assert len(server.bodies) == 5
    assert [words.split("take ")[1] for words in used.take_notices()] == [
        "'seed': a sampled reply cannot be had again.",
        "'top_p': it chooses how much chance is in a reply.",
    ]


def test_a_run_says_once_what_a_server_does_not_take(server: Server) -> None:
    server.first = [refused("Unsupported parameter: 'seed'")]
    events: list[Any] = []
    run = Recorder(Tools(backend(server)), sink=events.append, cancel=CancelToken())
    for _ in range(2):
        run.generate("asker", [GenerationRequest(prompt())])
    assert [event.message for event in events if isinstance(event, Notice)] == [
        f"The server {server.url} does not take 'seed': a sampled reply cannot be had again."
    ]


@pytest.mark.parametrize(
    "text",
    ["This model's maximum context length is 4096 tokens", "Unknown model; stop asking", "max_tokens is too large"],
)
def test_a_refusal_of_something_else(server: Server, text: str) -> None:
    server.first = [refused(text)]
    with pytest.raises(ModelError, match=f"replies 400: {text}"):
        ask(backend(server))
    assert len(server.requests) == 1


def test_a_refusal_in_a_form_of_its_own_is_shown(server: Server) -> None:
    server.first = [lambda request: request.reply(404, {"detail": "no such thing"})]
    with pytest.raises(ModelError, match=r'replies 404: \{"detail": "no such thing"\}'):
        ask(backend(server))


def test_replies_without_a_word(server: Server) -> None:
    server.first = [lambda request: request.stream([""], "length")]
    ask(used := backend(server))
    assert "1 of the replies came to the end" in used.take_notices()[0]
    assert used.take_notices() == []


@pytest.mark.parametrize(
    "choices", [[], None, [{"prompt_logprobs": None}], [{"prompt_logprobs": [{}] * 99}], "not finite"], ids=repr
)
def test_likelihoods_that_do_not_come(vllm: Server, choices: Any) -> None:
    used = backend(vllm, tokenizer=tiny_tokenizer())

    def answer(request: Handler) -> None:
        table = [{str(i): {"logprob": float("-inf")} for i in vllm.bodies[0]["prompt"]}] * len(vllm.bodies[0]["prompt"])
        request.reply(200, {"choices": [{"prompt_logprobs": table}] if choices == "not finite" else choices})

    vllm.first = [answer]
    with pytest.raises(ModelError, match="no log-probabilities"):
        used.log_likelihood([prompt()], target="question", cancel=CancelToken())


def test_a_server_that_stops_in_between(server: Server) -> None:
    used = backend(server, attempts=1)
    server.shutdown()
    server.server_close()
    with pytest.raises(ModelError, match="cannot be reached any more"):
        ask(used)


def test_a_slow_server(server: Server) -> None:
    server.first = [lambda request: time.sleep(1)] * 3
    with pytest.raises(ModelError, match="in time"):
        ask(backend(server, timeout=0.2))
    assert len(server.requests) == 1  # it has that one, and would not be quicker with more


def test_stop_takes_requests_back(server: Server) -> None:
    server.gate, cancel = threading.Event(), CancelToken()

    def stop() -> None:
        end = time.monotonic() + 30
        while server.at_once < 3 and time.monotonic() < end:
            time.sleep(0.02)
        cancel.cancel()

    threading.Thread(target=stop).start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        ask(backend(server), *(GenerationRequest(prompt(f"{i}?")) for i in range(3)), cancel=cancel)
    assert time.monotonic() - began < 30  # it would wait for ever
    for _ in range(100):
        if server.broken_off == 3:
            break
        time.sleep(0.05)
    assert server.broken_off == 3  # nobody goes on writing


def test_usage_that_is_not_counted_is_estimated(server: Server) -> None:
    server.first = [lambda request: request.stream(["four"], "length", usage=False)]
    [reply] = ask(backend(server))
    assert reply.finish_reason == "length"
    assert reply.cost.completion_tokens == 1
    assert reply.cost.prompt_tokens > 10
