"""Many annotators at once, through the real HTTP interface: how long a save takes, and whether a label gets lost.

A server of its own is started over a new database with a queue of made disagreements. Every annotator signs in and
works through the queue: a save, the next item, a pause of random length (``think`` seconds on average). A save that
is not acknowledged is sent again, with the same token, until it is. Then the database is read: every acknowledged
label must be there, and none twice. Once all that is done in peace, it is done again with a server that is killed
(SIGKILL) half-way and started anew.
"""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from mdqa.benchmarks.examples import examples
from mdqa.errors import Cancelled, ConfigError, ModelError
from mdqa.performance.figures import Figure, Goal, percentile
from mdqa.performance.plan import Plan, numbers
from mdqa.performance.site import Site
from mdqa.records import Opinion, RunResult
from mdqa.run import new_run_id
from mdqa.users import User, hashed, write_users

QUEUE = "Load"
PASSWORD = "a password for a benchmark"
MARKS = ("A", "B", "both", "neither", "cannot_tell")
OVERLAP = 5
"""People per item, or fewer where there are fewer annotators."""

SAVE_SECONDS = 0.2
"""The 95th percentile of a save stays below this."""

SILENCE = 300.0
"""Seconds without any acknowledged label after which the benchmark gives up."""


@dataclass(frozen=True)
class Load:
    """How much: ``labels`` by ``annotators``, who pause ``think`` seconds on average. ``kill``: no, yes or both."""

    annotators: int = 50
    labels: int = 2000
    think: float = 2.0
    kill: str = "both"

    @classmethod
    def parse(cls, options: Mapping[str, Any]) -> Load:
        """From ``--set``; ConfigError names an option that does not exist or is out of its limits."""
        limits: dict[str, tuple[type, float, float]] = {
            "annotators": (int, 1, 200),
            "labels": (int, 1, 100_000),
            "think": (float, 0, 60),
        }
        kill = str(options.get("kill", "both"))
        if kill not in ("no", "yes", "both"):
            raise ConfigError(f"kill={kill!r} is not no, yes or both")
        return cls(**numbers("annotate", options, limits, others=("kill",)), kill=kill)

    @property
    def overlap(self) -> int:
        """People per item."""
        return min(OVERLAP, self.annotators)

    @property
    def items(self) -> int:
        """Items in the queue: together with the overlap just as many as give the labels."""
        return -(-self.labels // self.overlap)


@dataclass
class Acknowledged:
    """What the annotators were told, gathered from all threads. ``labels``: annotator by the token of the form."""

    labels: dict[str, str] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    again: int = 0
    problems: list[str] = field(default_factory=list)
    last: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, token: str, who: str, seconds: float, attempts: int) -> None:
        """A save that was acknowledged after so many attempts; the time is that of the last one."""
        with self.lock:
            self.labels[token] = who
            self.seconds.append(seconds)
            self.again += attempts - 1
            self.last = time.monotonic()


def bench(plan: Plan) -> Iterator[Figure]:
    """Figures of a server in peace and of one that is killed half-way; ``plan.options``: see :class:`Load`.

    At once: ConfigError for an option that cannot be used.
    """
    load = Load.parse(plan.options)
    kills = {"no": (False,), "yes": (True,), "both": (False, True)}[load.kill]
    return (figure for kill in kills for figure in _measure(plan, load, kill=kill))


def _measure(plan: Plan, load: Load, *, kill: bool) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="mdqa-bench-") as name:
        folder = Path(name)
        database = folder / "bench.db"
        _fill(plan, database, load)
        names = [f"annotator-{number}" for number in range(load.annotators)]
        kept = hashed(PASSWORD)
        write_users(folder / "users.json", [User(one, "annotator", kept) for one in names])
        site = Site(folder, database, folder / "users.json")
        try:
            site.start()
            told = _work(plan, site, load, names, kill=kill)
        finally:
            site.stop()
        if told.problems:
            raise ModelError(f"{len(told.problems)} annotators could not go on; the first one: {told.problems[0]}")
        yield from _figures(plan, database, load, told, kill=kill)


def _fill(plan: Plan, database: Path, load: Load) -> None:
    """A queue of runs whose two agents disagree, over the documents of the built-in examples."""
    asked = [example.question for example in examples()]
    with plan.open_store(database) as store, store.write():
        for number in range(load.items):
            item = asked[number % len(asked)]
            voices = (("local_agent", "the one"), ("global_agent", "the other"))
            opinions = tuple(Opinion(role=role, title=role, answer=answer) for role, answer in voices)
            begun = RunResult(
                id=new_run_id(),
                question=item.model_copy(update={"id": f"{item.id}-{number}"}),
                method="duquad",
                model="scripted",
                backend="scripted",
                status="running",
                created="2026-01-01T00:00:00+00:00",
                seed=number,
            )
            store.runs.begin(begun)
            store.runs.finish(begun.model_copy(update={"status": "ok", "answer": "the one", "opinions": opinions}))
            store.queues.send(begun.id, QUEUE, "bench")
        store.queue_settings.change(QUEUE, "bench", overlap=load.overlap, guidelines="Any answer will do.")


def _work(plan: Plan, site: Site, load: Load, names: Sequence[str], *, kill: bool) -> Acknowledged:
    """All annotators at once, until every label is there; the server is killed and started again where wanted."""
    told, stop = Acknowledged(), threading.Event()
    people = [
        threading.Thread(target=_annotate, args=(site.url, who, load.think, plan.seed, told, stop), daemon=True)
        for who in names
    ]
    for person in people:
        person.start()
    total, killed = load.items * load.overlap, False
    try:
        while any(person.is_alive() for person in people):
            plan.cancel.check()
            done = len(told.labels)
            plan.progress(done, total, "killed half-way" if kill else "in peace")
            if kill and not killed and done >= total / 2:
                killed = True
                site.kill()
                site.start()
            if time.monotonic() - told.last > SILENCE:
                told.problems.append(f"nothing was saved for {SILENCE:.0f} s, after {done} of {total} labels")
                break
            time.sleep(0.05)
    finally:
        stop.set()
        for person in people:
            person.join(20)
    return told


def _annotate(url: str, who: str, think: float, seed: int, told: Acknowledged, stop: threading.Event) -> None:
    """One annotator's work, from the sign-in until nothing is left."""
    rng = random.Random(f"{seed}:{who}")
    try:
        with httpx.Client(base_url=url, timeout=15, trust_env=False) as client:
            token = _insist(client, who, {"do": "open"}, stop)[0]["token"]
            patience = 3
            while patience and not stop.is_set():
                if not token:  # what others hold open may come back
                    patience -= 1
                    stop.wait(max(think, 0.5))
                    token = _insist(client, who, {"do": "open"}, stop)[0]["token"]
                    continue
                stop.wait(rng.uniform(0, 2 * think))
                order = {"do": "save", "token": token, "mark": rng.choice(MARKS), "evidence": [1], "seconds": think}
                answer, seconds, attempts = _insist(client, who, order, stop)
                if answer.get("done") != "save":
                    raise ModelError(f"{who}: a save was refused: {answer.get('said')}")
                told.add(token, who, seconds, attempts)
                token = answer["token"]
    except Cancelled:
        pass
    except Exception as problem:  # whatever it is, the benchmark must not look as if it had gone well
        told.problems.append(f"{type(problem).__name__}: {problem}")


def _insist(
    client: httpx.Client, who: str, order: Mapping[str, Any], stop: threading.Event
) -> tuple[dict[str, Any], float, int]:
    """Send an order until it is answered, signing in again where need be: answer, its seconds, attempts."""
    attempts = 0
    while not stop.is_set():
        attempts += 1
        began = time.perf_counter()
        with suppress(httpx.HTTPError):
            body = {"data": [{"queue": QUEUE, **order}], "session_hash": who}  # a browser's tab has one of its own
            sent = client.post("/gradio_api/run/annotate", json=body)
            seconds = time.perf_counter() - began
            if sent.status_code == 401:
                attempts -= 1  # it was never looked at
                client.post("/login", data={"username": who, "password": PASSWORD})
                continue
            if sent.is_success and not (answer := sent.json()["data"][0]).get("fault"):
                return answer, seconds, attempts
        stop.wait(0.3)
    raise Cancelled


def _figures(plan: Plan, database: Path, load: Load, told: Acknowledged, *, kill: bool) -> Iterator[Figure]:
    """Time of a save, and what became of the labels."""
    with plan.open_store(database) as store:
        log = [entry for entry in store.labels.log(QUEUE) if entry.action == "label"]
    kept = {entry.token: entry.annotator for entry in log}
    pairs = {(entry.annotator, entry.item) for entry in log}
    name, number = "annotate.killed" if kill else "annotate", len(told.labels)
    if not number:
        raise ModelError("no label was acknowledged")
    people = f"{load.annotators} annotators, {load.think:g} s between saves on average"
    p95 = percentile(told.seconds, 95)
    yield Figure(
        f"{name}.save_p95",
        p95,
        "s",
        baseline=SAVE_SECONDS,
        ratio=p95 / SAVE_SECONDS,
        low=min(told.seconds),
        high=max(told.seconds),
        n=number,
        against="promised",
        goal=Goal(1),
        note=people + (f", {told.again} saves sent again" if told.again else ""),
    )
    safe = sum(kept.get(token) == who for token, who in told.labels.items())
    counts = {"baseline": float(number), "n": number, "against": "acknowledged"}
    yield Figure(f"{name}.safe", safe, "labels", ratio=safe / number, goal=Goal(1, at_least=True), **counts)  # type: ignore[arg-type]
    yield Figure(f"{name}.entries", len(log), "labels", ratio=len(log) / number, goal=Goal(1), **counts)  # type: ignore[arg-type]
    yield Figure(
        f"{name}.items_of_a_person",
        len(pairs),
        "pairs",
        ratio=len(pairs) / max(len(log), 1),
        baseline=float(len(log)),
        n=number,
        against="labels: nobody got an item twice",
        goal=Goal(1, at_least=True),
    )
