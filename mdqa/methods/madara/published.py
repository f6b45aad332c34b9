"""The paper's own measurements, to try thresholds on (Tables 2, 4, 6, 9, 12 and 15). Facts, no code."""

from __future__ import annotations

from mdqa.methods.madara.sensitivity import Cell

ROUTED = (
    Cell(
        "Llama-3.1-8B / CONFLICTS",
        (0.76, 0.43, 0.08),
        0.139,
        {"nf": 0.139, "three_agent": 0.241, "cot": 0.165, "sda": 0.194, "pde": 0.502},
    ),
    Cell(
        "Llama-3.1-8B / FEVER",
        (0.65, 0.49, 0.10),
        0.887,
        {"nf": 0.887, "three_agent": 0.878, "cot": 0.884, "sda": 0.882, "atf": 0.909},
    ),
    Cell(
        "Mistral-7B-v0.3 / CONFLICTS",
        (0.35, 0.22, 0.18),
        0.181,
        {"nf": 0.181, "three_agent": 0.186, "cot": 0.228, "sda": 0.203, "pde": 0.435},
    ),
    Cell(
        "Mistral-7B-v0.3 / FEVER",
        (0.28, 0.09, 0.01),
        0.907,
        {"nf": 0.907, "three_agent": 0.909, "cot": 0.926, "sda": 0.907},
    ),
    Cell(
        "Qwen3-8B / CONFLICTS",
        (0.39, 0.04, 0.14),
        0.608,
        {"nf": 0.608, "three_agent": 0.624, "cot": 0.624, "sda": 0.630, "pde": 0.586},
    ),
    Cell(
        "Qwen3-8B / FEVER",
        (0.63, 0.51, 0.14),
        0.896,
        {"nf": 0.896, "three_agent": 0.898, "cot": 0.895, "sda": 0.900, "atf": 0.909},
    ),
    Cell(
        "Qwen2.5-7B / CONFLICTS",
        (0.46, -0.26, 0.08),
        0.599,
        {"nf": 0.599, "three_agent": 0.650, "cot": 0.624, "sda": 0.654, "pde": 0.586},
    ),
    Cell(
        "Qwen2.5-7B / FEVER",
        (0.62, 0.21, 0.06),
        0.871,
        {"nf": 0.871, "three_agent": 0.889, "cot": 0.875, "sda": 0.905, "atf": 0.882},
    ),
    Cell(
        # Table 4 prints .79, .40, .40 and rho* = -0.5, so the unrounded second one is the smaller
        "Gemma-2-9B / CONFLICTS",
        (0.79, 0.40, 0.401),
        0.608,
        {"nf": 0.608, "three_agent": 0.646, "cot": 0.633, "sda": 0.633, "pde": 0.599},
    ),
    Cell(
        "Gemma-2-9B / FEVER",
        (0.58, 0.41, 0.18),
        0.922,
        {"nf": 0.922, "three_agent": 0.924, "cot": 0.925, "sda": 0.925, "atf": 0.936},
    ),
)
"""The routing grid of Table 2, with the correlations of Table 4 and PDE on strong models from Table 15."""

HELD_OUT = (
    # Degenerate scoring: 98% of the grades at the floor, so no correlation is defined and each counts as 0
    Cell("Llama-3.1-8B / TriviaQA", (0.0, 0.0, 0.0), 0.298, {"nf": 0.298, "pde": 0.796}),
    Cell("Mistral-7B-v0.3 / TriviaQA", (0.47, 0.05, 0.02), 0.676, {"nf": 0.676, "pde": 0.737}),
)
"""The two cells of TriviaQA whose No-Filter accuracy is printed (Tables 1 and 9)."""

MULTI_HOP = (
    Cell(
        "Qwen2.5-7B / MuSiQue",
        (0.83, 0.54, 0.03),
        0.14,
        {"nf": 0.14, "three_agent": 0.30, "cot": 0.21, "sda": 0.30, "pde": 0.24},
    ),
)
"""Table 6."""
