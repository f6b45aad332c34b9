"""What there is, by name: one line per variant, imported only when it is used.

Forms, lists on the screen and the contract tests follow from these tables; adding a variant is a file and a line.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from mdqa.errors import ConfigError

METHODS: Mapping[str, str] = MappingProxyType(
    {
        "direct": "mdqa.methods.direct.method:DirectAnswering",
        "retrieve_read": "mdqa.methods.retrieve_read.method:RetrieveRead",
        "in_context": "mdqa.methods.in_context.method:InContextRetrieval",
        "main_rag": "mdqa.methods.main_rag.method:MainRAG",
        "duquad": "mdqa.methods.duquad.method:DuQUAD",
        "madara": "mdqa.methods.madara.method:MADARA",
        "cafe": "mdqa.methods.cafe.method:CAFE",
    }
)

BACKENDS: Mapping[str, str] = MappingProxyType(
    {
        "hf": "mdqa.backends.hf:TransformersBackend",
        "vllm": "mdqa.backends.vllm:VLLMBackend",
        "openai": "mdqa.backends.openai:OpenAIBackend",
        "scripted": "mdqa.backends.scripted:ScriptedBackend",
    }
)

RANKERS: Mapping[str, str] = MappingProxyType(
    {
        "bm25": "mdqa.retrieval.bm25:BM25Ranker",
        "dense": "mdqa.retrieval.dense:DenseRanker",
        "rrf": "mdqa.retrieval.fusion:ReciprocalRankFusion",
        "cross_encoder": "mdqa.retrieval.cross_encoder:CrossEncoderRanker",
        "rrf_rerank": "mdqa.retrieval.fusion:FusionThenReranking",
        "listwise": "mdqa.retrieval.listwise:ListwiseRanker",
        "found_in_the_middle": "mdqa.retrieval.found_in_the_middle:FoundInTheMiddle",
        "openai": "mdqa.retrieval.openai_embeddings:OpenAIRanker",
    }
)

INDEXES: Mapping[str, str] = MappingProxyType({"bm25": "mdqa.retrieval.corpus:BM25Index"})

CALIBRATIONS: Mapping[str, str] = MappingProxyType(
    {
        "cafe": "mdqa.methods.cafe.calibration:calibrate",
        "madara": "mdqa.methods.madara.calibration:calibrate",
    }
)

READERS: Mapping[str, str] = MappingProxyType(
    {
        "mdqa": "mdqa.benchmarks.jsonl:read",
        "lost_in_the_middle": "mdqa.benchmarks.nq:read",
        "hotpotqa": "mdqa.benchmarks.hotpotqa:read",
        "musique": "mdqa.benchmarks.musique:read",
        "2wikimultihopqa": "mdqa.benchmarks.twowiki:read",
        "squad": "mdqa.benchmarks.squad:read",
        "fever": "mdqa.benchmarks.fever:read",
        "ramdocs": "mdqa.benchmarks.ramdocs:read",
        "flashrag": "mdqa.benchmarks.flashrag:read",
    }
)

BENCHES: Mapping[str, str] = MappingProxyType(
    {
        "attention": "mdqa.performance.attention:bench",
        "cafe": "mdqa.performance.cafe:bench",
        "madara": "mdqa.performance.madara:bench",
        "duquad": "mdqa.performance.duquad:bench",
        "annotate": "mdqa.performance.annotating:bench",
        "people": "mdqa.performance.people:bench",
    }
)

REPORTS: Mapping[str, str] = MappingProxyType(
    {
        "ablations": "mdqa.reports.duquad.ablations:report",
        "local_documents": "mdqa.reports.duquad.local_documents:report",
        "thresholds": "mdqa.reports.duquad.thresholds:report",
        "weights": "mdqa.reports.duquad.weights:report",
        "signals": "mdqa.reports.duquad.signals:report",
        "attention_by_position": "mdqa.reports.duquad.attention:report",
        "agreement": "mdqa.reports.duquad.agreement:report",
        "document_scores": "mdqa.reports.duquad.document_scores:report",
        "stability": "mdqa.reports.duquad.stability:report",
        "local_rankers": "mdqa.reports.duquad.local_rankers:report",
        "costs": "mdqa.reports.costs:report",
        "accuracy": "mdqa.reports.common.accuracy:report",
        "accuracy_by_position": "mdqa.reports.common.by_position:report",
        "accuracy_by_documents": "mdqa.reports.common.by_documents:report",
        "accuracy_latency": "mdqa.reports.common.latency:report",
        "paired_bootstrap": "mdqa.reports.common.paired_bootstrap:report",
        "data_sets": "mdqa.reports.common.data_sets:report",
        "madara_treatments": "mdqa.reports.madara.treatments:report",
        "madara_isolation": "mdqa.reports.madara.isolation:report",
        "madara_routing": "mdqa.reports.madara.routing:report",
        "madara_router_accuracy": "mdqa.reports.madara.routers:summary",
        "madara_routers": "mdqa.reports.madara.routers:report",
        "madara_coupling": "mdqa.reports.madara.coupling:report",
        "madara_coupling_by_query": "mdqa.reports.madara.coupling:by_question",
        "madara_coupling_stability": "mdqa.reports.madara.coupling:stability",
        "madara_coupling_thresholds": "mdqa.reports.madara.thresholds:coupling",
        "madara_no_filter": "mdqa.reports.madara.thresholds:no_filter",
        "evidence_selection": "mdqa.reports.cafe.selection:report",
        "cafe_masking": "mdqa.reports.cafe.masking:report",
        "cafe_ablations": "mdqa.reports.cafe.studies:ablations",
        "cafe_granularity": "mdqa.reports.cafe.studies:granularity",
        "cafe_delta": "mdqa.reports.cafe.studies:delta",
        "cafe_hyperparameters": "mdqa.reports.cafe.studies:hyperparameters",
        "cafe_recall": "mdqa.reports.cafe.recall:report",
        "cafe_heads": "mdqa.reports.cafe.heads:report",
        "cafe_first_token": "mdqa.reports.cafe.first_token:report",
    }
)


def load(table: Mapping[str, str], name: str, what: str = "name") -> Any:
    """The object behind a name; ConfigError lists what exists."""
    try:
        module, _, attribute = table[name].partition(":")
    except KeyError:
        raise ConfigError(f"unknown {what} {name!r}; there is: {', '.join(table)}") from None
    return getattr(import_module(module), attribute)


def method_class(name: str) -> Any:
    """The class of a method; ConfigError lists the methods."""
    return load(METHODS, name, "method")
