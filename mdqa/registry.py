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
        "scripted": "mdqa.backends.scripted:ScriptedBackend",
    }
)

RANKERS: Mapping[str, str] = MappingProxyType(
    {
        "bm25": "mdqa.retrieval.bm25:BM25Ranker",
        "dense": "mdqa.retrieval.dense:DenseRanker",
        "rrf": "mdqa.retrieval.fusion:ReciprocalRankFusion",
    }
)

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
    }
)

BENCHES: Mapping[str, str] = MappingProxyType(
    {
        "attention": "mdqa.performance.attention:bench",
        "cafe": "mdqa.performance.cafe:bench",
        "madara": "mdqa.performance.madara:bench",
        "duquad": "mdqa.performance.duquad:bench",
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
