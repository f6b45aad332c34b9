"""The one worker of a running program: holds the loaded model and takes jobs in the order in which they come.

A job is "load this model", "carry out this run", "calibrate" or "carry out a study", which goes back to the end of the
line after each of its runs. Jobs belong to the engine and not to a browser page: they go on and what they give is
stored when the page is closed. One model is loaded at a time; a job that wants another one exchanges it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial

from mdqa.backends.base import Capability
from mdqa.errors import ConfigError, MdqaError, OutputError, StorageError
from mdqa.methods.base import Encoder, Tools
from mdqa.records import Profile, RunError, RunStatus
from mdqa.run import begin, run_one
from mdqa.scoring.answers import run_is_right
from mdqa.trace import SCREEN_ONLY, BaseEvent, ModelCall, RunFinished
from storage.store import Store
from ui.calibrating import CalibrationOrder, LiveCalibration
from ui.faceting import OlderRuns, facets_now
from ui.following import LiveRun, Order
from ui.keeping import keep_begun, keep_unbegun, keep_waiting
from ui.lending import CarryOut
from ui.line import Job, Line, LoadJob
from ui.loaded import LoadedModel, MakeBackend
from ui.logs import log, working_on
from ui.study_jobs import LiveStudy, StudyOrder
from ui.views.calibration import CalibrationState
from ui.views.live import Snapshot
from ui.views.models import ModelStatus
from ui.views.studies import StudyState


class Engine:
    """Worker thread, queue and model.

    ``find_profile`` gives the calibration for (method, model, name) or None; ``carry_out`` computes a run.
    """

    def __init__(
        self,
        store: Store,
        make_backend: MakeBackend,
        make_encoder: Callable[[], Encoder],
        find_profile: Callable[[str, str, str], Profile | None],
        *,
        queue: int = 32,
        carry_out: CarryOut = run_one,
    ) -> None:
        self._store = store
        self._run = carry_out
        self._new_encoder = make_encoder
        self._encoder: Encoder | None = None
        self._find_profile = find_profile
        self._line = Line(queue)
        self._model = LoadedModel(make_backend)
        self._thread = threading.Thread(target=self._work, name="mdqa-engine", daemon=True)
        self._older = OlderRuns(store)

    def start(self, model: str = "") -> None:
        """Begin to take jobs; ``model`` is loaded first."""
        if model:
            self.load(model)
        self._thread.start()
        self._older.start()

    def close(self, timeout: float = 30.0) -> None:
        """Stop the work that is going on, free the model, and keep what still waited as interrupted."""
        self._older.stop()
        for job in self._line.close():
            self._end_unbegun(job, "interrupted")
        if self._thread.ident is not None:
            self._thread.join(timeout)

    @property
    def model_status(self) -> ModelStatus:
        """What is loaded or being loaded."""
        return self._model.status

    @property
    def capabilities(self) -> frozenset[Capability] | None:
        """What the loaded backend can do; None where none is loaded."""
        backend = self._model.backend
        return backend.capabilities if backend else None

    def loaded(self) -> str:
        """Name under which the loaded model was asked for; empty where none is."""
        return self._model.name

    def count_tokens(self, texts: Sequence[str]) -> tuple[int, int] | None:
        """Tokens of the texts and the model's window; None while no model is there or it is busy."""
        backend = self._model.backend
        if backend is None or not self._line.idle:
            return None
        if not self._model.use.acquire(blocking=False):
            return None
        try:
            return sum(backend.count_tokens(text) for text in texts), backend.window
        finally:
            self._model.use.release()

    def load(self, model: str) -> None:
        """Ask for a model to be loaded when the jobs before it are done."""
        self._model.say(ModelStatus("loading", model, "waiting to be loaded"))
        self._line.put_load(LoadJob(model))

    def unload(self) -> None:
        """Ask for the model's memory to be freed when the jobs before it are done; the next run loads one again."""
        if self._model.name:
            words = "its memory is freed as soon as the runs before are done"
            self._model.say(ModelStatus("loading", self._model.name, words))
        self._line.put_load(LoadJob(""))

    def submit(self, order: Order) -> str:
        """Put a run in line and store it; ConfigError when the line is full."""
        return self._line.put(LiveRun(order), keep=partial(keep_waiting, self._store, order))

    def calibrate(self, order: CalibrationOrder) -> str:
        """Put a calibration in line; ConfigError when the line is full or the same profile is being made already."""

        def only_one() -> None:
            for state in self.calibrations():
                same = (state.title, state.model, state.name) == (order.title, order.model, order.name)
                if same and not state.finished:
                    raise ConfigError(f"a profile {order.name!r} is being made already; wait for it or stop it first")

        return self._line.put(LiveCalibration(order), check=only_one)

    def study(self, order: StudyOrder) -> str:
        """Put a study in line; one that waits or works already stays as it is. ConfigError when the line is full."""
        return self._line.put(LiveStudy(order))

    def stop(self, run_id: str) -> bool:
        """Ask a run or a calibration to stop; False if it is not known here or has ended."""
        job, waited = self._line.stop(run_id)
        if job is not None and waited:
            self._end_unbegun(job, "cancelled")
        return job is not None

    def snapshot(self, run_id: str) -> Snapshot | None:
        """The run now; None if this program has not carried it out lately."""
        job, place = self._line.find(run_id) or (None, 0)
        return job.snapshot(place) if isinstance(job, LiveRun) else None

    def study_state(self, study_id: str) -> StudyState | None:
        """The study now; None if this program has not worked on it lately."""
        job, place = self._line.find(study_id) or (None, 0)
        return job.snapshot(place) if isinstance(job, LiveStudy) else None

    def calibrations(self) -> list[CalibrationState]:
        """The calibrations that wait, work or have ended lately, the newest first."""
        return [job.snapshot(place) for job, place in self._line.all() if isinstance(job, LiveCalibration)]

    def _work(self) -> None:
        while taken := self._line.take():
            job, context = taken
            context.run(self._attend_to, job)
        self._model.unload()

    def _attend_to(self, job: LoadJob | Job) -> None:
        """Do it; a failure ends this job and no other."""
        with working_on(run="" if isinstance(job, LoadJob) else job.order.run_id):
            try:
                self._attempt(job)
            except MdqaError as problem:
                log.warning("%s", problem)
                ours = not isinstance(problem, StorageError | OutputError)  # those name paths of the server
                _fail(job, str(problem) if ours else "")
            except Exception:
                log.exception("a job failed")
                _fail(job)

    def _attempt(self, job: LoadJob | Job) -> None:
        if isinstance(job, LoadJob):
            if job.model:
                self._model.ready(job.model)
            else:
                self._model.unload()
        elif isinstance(job, LiveCalibration):
            self._calibrate(job)
        elif isinstance(job, LiveStudy):
            self._carry_on(job)
        else:
            self._carry_out(job)

    def _calibrate(self, job: LiveCalibration) -> None:
        backend = self._model.ready(job.order.model, job.preparing)
        job.preparing("")
        with self._model.use:
            job.work(Tools(backend, self._shared_encoder), self._store)

    def _carry_on(self, study: LiveStudy) -> None:
        """The next run of a study; then the study stands at the end of the line, so that others' runs come between."""
        run = study.next_run()
        if run is not None:
            with self._line.beside(run):  # it is stored; a long study would push others' runs out
                carried_out = self._carry_out(run)
                study.took(run)
            if not carried_out:  # the model cannot be had, and the runs that are left would say the same
                study.end("failed", run.snapshot().error)
                return
        self._line.put_back(study, study.rests)
        if self._line.closed and not study.snapshot().finished:
            study.end("interrupted")

    def _carry_out(self, run: LiveRun) -> bool:
        """Carry out and store a run; False where its model or profile cannot be had, which is stored too."""
        order = run.order
        try:
            backend = self._model.ready(order.model, run.preparing)
            profile = self._find_profile(order.method, backend.model, order.profile)
        except MdqaError as problem:
            keep_unbegun(self._store, order, "failed", RunError(type=type(problem).__name__, message=str(problem)))
            run.end("failed", str(problem))
            return False
        run.preparing("")
        tools = Tools(backend, self._shared_encoder, profile)
        header = begin(
            order.method,
            order.config,
            order.item,
            tools,
            seed=order.seed,
            run_id=order.run_id,
            overflow=order.overflow,
        )
        keep_begun(self._store, order, header)

        calls: list[ModelCall] = []

        def sink(event: BaseEvent) -> None:
            if isinstance(event, ModelCall):
                calls.append(event)
            if isinstance(event, RunFinished):
                event = event.model_copy(update={"status": self._seen_from_here(run, event.status)})
                last.append(event)
            if not isinstance(event, SCREEN_ONLY):
                self._store.runs.record(order.run_id, event)
            if not isinstance(event, RunFinished):
                run.take(event)

        last: list[BaseEvent] = []
        with self._model.use:
            outcome = self._run(header, tools, sink=sink, cancel=run.cancel)
        status = self._seen_from_here(run, outcome.result.status)
        result = outcome.result.model_copy(update={"status": status})
        self._store.runs.finish(result, outcome.maps, correct=run_is_right(result), facets=facets_now(result, calls))
        log.info("ends: %s", status)
        if result.error is not None:
            log.warning("failed: %s", result.error.message)
        for event in last:  # people are told only when everything is stored
            run.take(event)
        return True

    def _seen_from_here(self, run: LiveRun, status: RunStatus) -> RunStatus:
        """A run that the end of the program stopped was interrupted; a method sees no difference."""
        return "interrupted" if status == "cancelled" and self._line.cut_off(run.cancel) else status

    def _shared_encoder(self) -> Encoder:
        """The sentence encoder, loaded by the first run that asks for it (worker thread only)."""
        if self._encoder is None:
            self._encoder = self._new_encoder()
        return self._encoder

    def _end_unbegun(self, job: Job, status: RunStatus) -> None:
        """A job that waited will not begin. A run is kept all the same, because its address has been given out."""
        if isinstance(job, LiveRun):
            try:
                keep_unbegun(self._store, job.order, status)
            except MdqaError as problem:
                log.warning("run %s could not be kept: %s", job.order.run_id, problem)
        job.end(status)


def _fail(job: LoadJob | Job, reason: str = "") -> None:
    """The job failed; a fault of ours is named by a reference."""
    if not isinstance(job, LoadJob):
        fault = f"Something went wrong inside the program (reference {job.order.run_id[:8]}); its log has the details."
        job.end("failed", reason or fault)
