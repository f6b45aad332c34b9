"""The judge: the final answer from the agents' reasonings and the evidence that is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mdqa.backends.base import GenerationRequest
from mdqa.methods.asking import Reply
from mdqa.methods.duquad.agents import Statement, judge_prompt, judge_schema
from mdqa.methods.duquad.config import DuQUADConfig
from mdqa.methods.duquad.parsing import JudgeReply, agrees_with, raw_answer
from mdqa.records import Question

Evidence = Mapping[str, Sequence[str] | None]
"""Per document id the sentences that the judge sees, or None for the whole text."""


@dataclass(frozen=True)
class Judgement:
    """What the judge said, whose answer that is, and the last resort that was taken (empty if none)."""

    answer: str
    reasoning: str
    group: str
    fallback: str = ""

    @property
    def agreement(self) -> str:
        """Whose answer the judge gives, in words."""
        return {
            "both": "The judge agrees with both agents.",
            "local": "The judge agrees with the Local Agent.",
            "global": "The judge agrees with the Global Agent.",
        }.get(self.group, "The judge gives an answer that no agent gave.")


def judge_request(
    item: Question, evidence: Evidence, statements: Sequence[Statement], config: DuQUADConfig, seed: int
) -> GenerationRequest:
    """The call to the judge."""
    return GenerationRequest(
        prompt=judge_prompt(item, evidence, statements),
        max_new_tokens=config.judge_max_tokens,
        temperature=config.temperature,
        top_p=config.top_p,
        seed=seed,
        schema=judge_schema(config.judge_max_tokens),
    )


def judgement(reply: Reply[JudgeReply], statements: Sequence[Statement]) -> Judgement:
    """The judge's answer; of a reply that cannot be read its raw text, or an agent's answer if it says nothing."""
    said, fallback = reply.value, ""
    if said is None:
        answer, source = raw_answer(reply.raw), "its answer is taken from the raw text"
        if not answer:
            agent = next((s for s in reversed(statements) if s.answer), None)
            answer = agent.answer if agent else ""
            source = f"the {agent.title}'s answer stands" if agent else "there is no answer"
        said = JudgeReply("", answer)
        fallback = f"The judge's reply could not be read ({reply.detail}); {source}."
    by_view = {statement.view: statement.answer for statement in statements}
    group = agrees_with(said.answer, local_answer=by_view.get("local"), global_answer=by_view.get("global"))
    return Judgement(said.answer, said.reasoning, group, fallback)
