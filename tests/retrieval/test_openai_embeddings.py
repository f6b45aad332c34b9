"""Embeddings over HTTP, from a real server on this machine that computes them with a tiny encoder."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from mdqa.backends.addresses import check_address
from mdqa.errors import ConfigError, ModelError
from mdqa.records import Document
from mdqa.retrieval.dense import SentenceEncoder
from mdqa.retrieval.openai_embeddings import OpenAIEmbeddings, OpenAIRanker
from tests.tiny import tiny_sentence_encoder

KEY = "sk-a-secret"
TEXTS = ["which river", "bread", "a river", "moss on stones", "old stones"]

Answer = Callable[[dict[str, Any]], tuple[int, dict[str, str], Any]]


class Server(ThreadingHTTPServer):
    """Serves ``/v1/embeddings``. ``first``: what is done with the first requests instead, one by one."""

    daemon_threads = True

    def __init__(self, encoder: SentenceEncoder) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.encoder = encoder
        self.first: list[Answer] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def embeddings(self, body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        # three times as long as a unit vector, and the last text's first: neither must matter
        vectors = (3 * self.encoder.encode(body["input"])).tolist()
        data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
        return 200, {}, {"object": "list", "data": data[::-1], "model": body["model"]}


class Handler(BaseHTTPRequestHandler):
    """One request to the server."""

    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.bodies.append(body)
        self.server.headers.append(dict(self.headers))
        answer = self.server.first.pop(0) if self.server.first else self.server.embeddings
        if self.path != "/v1/embeddings":
            answer = status(404, {"error": "no such path"})
        elif self.headers.get("Authorization") != f"Bearer {KEY}":
            answer = status(401, {"error": f"wrong key {self.headers.get('Authorization')}"})
        code, headers, reply = answer(body)
        text = reply.encode() if isinstance(reply, str) else json.dumps(reply).encode()
        try:
            self.send_response(code)
            for name, value in {**headers, "Content-Length": str(len(text))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)
        except OSError:
            self.close_connection = True  # the client has given up

    def log_message(self, *_: Any) -> None:
        """Quiet."""


def status(code: int, reply: Any = "", **headers: str) -> Answer:
    return lambda _: (code, {name.replace("_", "-"): value for name, value in headers.items()}, reply)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> SentenceEncoder:
    return SentenceEncoder(tiny_sentence_encoder(tmp_path_factory.mktemp("encoder") / "tiny"))


@pytest.fixture
def server(encoder: SentenceEncoder) -> Iterator[Server]:
    server = Server(encoder)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(5)


def client(server: Server, key: str = KEY, **options: Any) -> OpenAIEmbeddings:
    return OpenAIEmbeddings(server.url, "tiny", key=key, **{"wait": 0.01, **options})


def test_this_machine_is_not_looked_for_through_a_proxy(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert len(OpenAIEmbeddings(server.url, "tiny", key=KEY).encode(["a river"])) == 1


def test_vectors_come_back_in_order_in_batches_and_unit_length(server: Server, encoder: SentenceEncoder) -> None:
    vectors = client(server, batch=2).encode(TEXTS)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, encoder.encode(TEXTS), atol=1e-5)
    assert [body["input"] for body in server.bodies] == [TEXTS[:2], TEXTS[2:4], TEXTS[4:]]
    assert {key: server.bodies[0][key] for key in ("model", "encoding_format")} == {
        "model": "tiny",
        "encoding_format": "float",
    }
    assert client(server).encode([]).shape == (0, 0)
    assert len(server.bodies) == 3, "nothing to embed is not asked for"


def test_the_ranker_gives_the_cosines_of_the_servers_model(server: Server, encoder: SentenceEncoder) -> None:
    documents = tuple(Document(id=text, text=text) for text in TEXTS[1:])
    scores = OpenAIRanker(client(server), instruction="find: ").rank(TEXTS[0], documents)
    expected = encoder.encode(TEXTS[1:]) @ encoder.encode(["find: " + TEXTS[0]])[0]
    assert scores == pytest.approx([float(score) for score in expected], abs=1e-5)


def test_a_busy_server_is_asked_again(server: Server, encoder: SentenceEncoder) -> None:
    server.first = [status(429, "slow down", Retry_After="0"), status(503, "restarting")]
    np.testing.assert_allclose(client(server).encode(TEXTS[:1]), encoder.encode(TEXTS[:1]), atol=1e-5)
    assert len(server.bodies) == 3


def test_a_server_that_stays_busy_is_given_up(server: Server) -> None:
    server.first = [status(500, "out of memory")] * 9
    with pytest.raises(ModelError, match="replies 500 after 3 attempts: out of memory"):
        client(server, attempts=3).encode(TEXTS)
    assert len(server.bodies) == 3
    server.first = [status(429, "tomorrow", Retry_After="86400")]
    with pytest.raises(ModelError, match="replies 429: tomorrow"):
        client(server).encode(TEXTS)


def test_a_wrong_key_is_said_without_the_key(server: Server) -> None:
    with pytest.raises(ModelError, match="refuses the key in MDQA_API_KEY") as problem:
        client(server, key="sk-another").encode(TEXTS)
    assert "sk-another" not in str(problem.value)
    with pytest.raises(ModelError, match="wants a key; set MDQA_API_KEY"):
        client(server, key="").encode(TEXTS)
    assert "Authorization" not in server.headers[-1]
    assert len(server.bodies) == 2, "a refused key is not tried again"
    server.first = [status(400, f"bad request of {KEY}")]
    with pytest.raises(ModelError, match=r"replies 400: bad request of \*\*\*"):
        client(server).encode(TEXTS)
    assert KEY not in repr(vars(client(server))["name"])


def test_a_server_that_does_not_answer(server: Server, encoder: SentenceEncoder) -> None:
    release = threading.Event()

    def late(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        release.wait(10)
        return 200, {}, {}

    server.first = [late]
    with pytest.raises(ModelError, match=r"did not reply within 0\.2 seconds"):
        client(server, timeout=0.2).encode(TEXTS)
    release.set()


def test_a_server_that_is_not_there(server: Server) -> None:
    nowhere = OpenAIEmbeddings("http://127.0.0.1:1/v1", "tiny")
    with pytest.raises(ModelError, match=r"http://127\.0\.0\.1:1/v1/embeddings.* cannot be reached"):
        nowhere.encode(TEXTS)
    with pytest.raises(ModelError, match="replies 404"):
        OpenAIEmbeddings(server.url + "/other", "tiny", key=KEY).encode(TEXTS)
    server.first = [status(302, "", Location="http://127.0.0.1:1/elsewhere")]
    with pytest.raises(ModelError, match="replies 302"):  # the key must not go along
        client(server).encode(TEXTS)


ONE = {"index": 0, "embedding": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("not json", "sends no JSON: not json"),
        ([], "no list of embeddings"),
        ({"data": "x"}, "no list of embeddings"),
        ({"data": [1, 2]}, "no list of embeddings"),
        ({"data": [ONE]}, "1 embeddings for 2 texts"),
        ({"data": [ONE, ONE]}, "numbers them wrongly"),
        ({"data": [ONE, {"index": [1], "embedding": [1.0]}]}, "numbers them wrongly"),
        ({"data": [ONE, {"index": 1}]}, "no list of numbers"),
        ({"data": [ONE, {"index": 1, "embedding": []}]}, "no list of numbers"),
        ({"data": [ONE, {"index": 1, "embedding": ["1", "2"]}]}, "no list of numbers"),
        ({"data": [ONE, {"index": 1, "embedding": [True, False]}]}, "no list of numbers"),
        ({"data": [ONE, {"index": 1, "embedding": [10**400, 1]}]}, "no list of numbers"),
        ({"data": [ONE, {"index": 1, "embedding": [1.0]}]}, "different lengths"),
        ({"data": [ONE, {"index": 1, "embedding": [0, 0]}]}, "without a direction"),
        ('{"data": [{"embedding": [1, 2]}, {"embedding": [NaN, 1]}]}', "without a direction"),
    ],
)
def test_a_reply_of_the_wrong_shape(server: Server, reply: Any, said: str) -> None:
    server.first = [status(200, reply)]
    with pytest.raises(ModelError, match=said):
        client(server).encode(TEXTS[:2])


@pytest.mark.parametrize(
    "url",
    ["", "api.openai.com/v1", "ftp://host/v1", "file:///etc/passwd", "http://", "http://host:port/v1", "http://["],
)
def test_a_url_that_is_none(url: str) -> None:
    with pytest.raises(ConfigError, match="must look like"):
        check_address(url, "a server")


@pytest.mark.parametrize("url", ["https://me:secret@host/v1", "https://secret@host/v1", "https://host/v1?key=secret"])
def test_a_url_with_a_secret_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ConfigError, match="MDQA_API_KEY") as problem:
        OpenAIEmbeddings(url, "tiny")
    assert "secret" not in str(problem.value)


@pytest.mark.parametrize("key", ["sk-\nInjected: yes", "sk-ключ"])
def test_a_key_that_cannot_be_sent(key: str) -> None:
    with pytest.raises(ConfigError, match="characters that no key has") as problem:
        OpenAIEmbeddings("http://127.0.0.1:1/v1", "tiny", key=key)
    assert key not in str(problem.value)
    with pytest.raises(ConfigError, match="name of a model"):
        OpenAIEmbeddings("http://127.0.0.1:1/v1", "")
