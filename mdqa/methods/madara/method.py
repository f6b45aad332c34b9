"""MADARA: assess the documents with three agents, then treat them as the model and task need.

The router (``router.py``) decides once per model and task from a calibration profile (``calibration.py``); a
treatment can also be set by hand. ``answer`` follows Figure 1: route, assess, select, generate; PDE reads each
selected document alone and lets the answers vote. What a treatment is made of stands in ``plans.py``.
"""

from __future__ import annotations

from typing import ClassVar

from mdqa.methods.base import Method, MethodConfig, Tools
from mdqa.methods.madara.agents import Signal
from mdqa.methods.madara.assessing import Assessed, ask_conflict, assess, record
from mdqa.methods.madara.comparison import Carried, compare
from mdqa.methods.madara.config import MADARAConfig
from mdqa.methods.madara.deciding import by_conflict, decided, route
from mdqa.methods.madara.plans import Chosen, Plan, choose, plan_for, reading_order, vote_weights
from mdqa.methods.madara.reading import Reader
from mdqa.methods.madara.relevance import Logistic, probability_from
from mdqa.methods.madara.treatments import Scores
from mdqa.methods.recorder import Recorder
from mdqa.methods.tasks import Task, task_of
from mdqa.records import DocumentScore, Question, Routing


class MADARA(Method):
    """Model-Adaptive Document Assessment Routing Architecture."""

    name: ClassVar[str] = "madara"
    title: ClassVar[str] = "MADARA"
    summary: ClassVar[str] = (
        "Three agents assess each document; a probe of the model decides whether scores are ranked, thresholded, "
        "reasoned first, or documents are read alone and their answers vote."
    )
    Config = MADARAConfig
    uses_profile: ClassVar[bool] = True
    without_profile: ClassVar[str] = "; or set the option treatment to nf, three_agent, cot, sda, atf or pde"
    controls: ClassVar[tuple[str, ...]] = ("treatment", "k", "kappa", "pde_votes", "compare")
    config: MADARAConfig

    @classmethod
    def profile_needed(cls, config: MethodConfig) -> bool:
        """A profile is what the router decides by; a treatment set by hand needs none."""
        assert isinstance(config, MADARAConfig)
        return config.treatment == "auto"

    def __init__(self, config: MethodConfig, tools: Tools) -> None:
        super().__init__(config, tools)
        if tools.profile is not None:
            decided(self.config, tools.profile)  # a damaged profile is said before any work
        if self.config.pde_ranking == "likelihood":
            tools.require("likelihood")
        self._probability: Logistic | None = None
        if self.config.pde_votes == "calibrated":
            self._probability = probability_from(tools.profile, self.config.pde_ranking)

    def answer(self, item: Question, run: Recorder) -> str:
        """Route, assess, select, generate; with ``compare``, the other treatments too."""
        routing = route(self.config, self.tools, run)
        conflict: Signal | None = None
        if self.config.per_query == "conflict" and routing.treatment != "pde":
            conflict, routing = self._ask_for_conflict(item, run, routing)
        run.route(routing)
        plan = plan_for(routing.treatment, self.config)
        assessed: dict[str, Assessed] = {}
        if plan.assessed:
            shared = conflict if plan.assessment == "base" else None
            assessed[plan.assessment] = assess(
                item, run, self.config, plan.assessment, branch=plan.treatment, conflict=shared
            )
        scores = assessed[plan.assessment].signals[plan.signal] if plan.assessed else None
        chosen = self._select(item, plan, scores, run)
        reader = Reader(item, run, self.config, self._task(item))
        if plan.alone:
            votes = self._probability.probabilities(scores) if self._probability and scores else scores
            answer = reader.alone(chosen.kept, vote_weights(plan, chosen.kept, votes))
        else:
            answer = reader.together(reading_order(chosen.kept, item.document_ids, self.config))
        if self.config.compare != "none":
            compare(item, run, self.config, reader, Carried(plan, chosen.kept, answer), assessed)
        return answer

    def _ask_for_conflict(self, item: Question, run: Recorder, routing: Routing) -> tuple[Signal, Routing]:
        """Per-query routing (ours): documents that are found in conflict are isolated, whatever the model needs."""
        with run.stage("conflict", "Are the documents in conflict?", item.document_ids) as stage:
            found = ask_conflict(item, run, self.config)
            record(stage, "conflict", found)
            if found.opinion:
                run.opinion(found.opinion)
        return found, by_conflict(routing) if found.has_conflict else routing

    def _task(self, item: Question) -> Task:
        if self.config.task in ("factoid", "fever"):
            return self.config.task
        return task_of(item) if self.config.task == "auto" else "factoid"

    def _select(self, item: Question, plan: Plan, scores: Scores | None, run: Recorder) -> Chosen:
        """The documents that the generator sees, best first, as one stage."""
        name, title = (
            ("input", "All documents in their given order")
            if plan.selection == "all"
            else ("selection", _SELECTION[plan.selection])
        )
        with run.stage(name, title, item.document_ids, branch=plan.treatment) as stage:
            chosen = choose(plan, item.document_ids, scores, self.config, f"{run.seed}:{item.id}")
            if scores is None:
                status = DocumentScore(status="unavailable", detail=f"{plan.title} does not assess documents")
                scores = dict.fromkeys(item.document_ids, status)
            stage.score(plan.signal, scores, threshold=chosen.threshold)
            stage.keep(chosen.kept, chosen.reasons)
        return chosen


_SELECTION = {
    "best": "Best documents by score",
    "adaptive": "Documents above the adaptive threshold",
    "random": "Random documents",
}
