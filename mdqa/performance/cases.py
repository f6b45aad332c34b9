"""What is measured on: prompts of a wanted length from the built-in examples, or a person's own questions.

A made prompt is an example's question over its own documents and as many others as the length asks for, in a seeded
order, all with the same number of words. No data file is needed, and the same options give the same prompts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from mdqa.backends.base import Backend
from mdqa.benchmarks.examples import Example, examples
from mdqa.errors import InputError
from mdqa.methods.answers import answer_prompt
from mdqa.prompting import Prompt
from mdqa.records import Document, Question

TOKENS_PER_DOCUMENT = 140
"""About as long as a paragraph of the usual benchmarks, so that 2,800 tokens are 20 documents."""

FEWEST_WORDS = 8


@dataclass(frozen=True)
class Case:
    """Questions of about the same length that are measured together; round r uses question r modulo their number."""

    name: str
    items: tuple[Question, ...]
    rounds: int

    def item(self, round_number: int) -> Question:
        """The question of a round."""
        return self.items[round_number % len(self.items)]


def answering_prompt(item: Question) -> Prompt:
    """The prompt of direct answering: all documents, the question last."""
    return answer_prompt(item.question, item.documents)


def prompt_tokens(backend: Backend, item: Question) -> int:
    """Tokens of the direct prompt; a few too many where only plain text can be counted (chat markers in pieces)."""
    prompt, encoder = answering_prompt(item), getattr(backend, "encoder", None)
    return backend.count_tokens(backend.render(prompt)) if encoder is None else len(encoder.encode(prompt).ids)


def built_in_cases(
    lengths: Sequence[int], count: Callable[[Question], int], rounds: int, limit: int | None = None
) -> list[Case]:
    """One case per length, with another of the built-in examples' questions in every round as far as they go.

    ``count``: tokens of a question's prompt. ``limit``: at most so many different questions. InputError for a length
    that holds no two documents.
    """
    chosen = examples()[: min(rounds, limit or rounds)]
    return [
        Case(f"{length:,} tokens", tuple(_sized(one, length, count) for one in chosen), rounds) for length in lengths
    ]


def _sized(chosen: Example, length: int, count: Callable[[Question], int]) -> Question:
    """The question with the longest equal documents whose prompt has at most ``length`` tokens."""
    number = max(2, round(length / TOKENS_PER_DOCUMENT))
    fewest, most = FEWEST_WORDS * number, max(length, FEWEST_WORDS * number + 1)  # a word has a token or more
    if (smallest := count(_question(chosen, number, fewest))) > length:
        raise InputError(f"{length} tokens are too few for {number} documents, whose prompt has at least {smallest}")
    while most - fewest > 1:
        middle = (fewest + most) // 2
        fewest, most = (middle, most) if count(_question(chosen, number, middle)) <= length else (fewest, middle)
    return _question(chosen, number, fewest)


def _question(chosen: Example, number: int, words: int) -> Question:
    """The question over ``number`` documents that have ``words`` words together."""
    own = chosen.question.documents
    pool = [*own, *(d for one in examples() if one.name != chosen.name for d in one.question.documents)]
    documents = [
        Document(
            id=f"{chosen.name}-{place + 1}",
            title=pool[place % len(pool)].title,
            text=" ".join(islice(_words(pool, place), words // number + (place < words % number))),
            gold=own[place].gold if place < len(own) else False,
        )
        for place in range(number)
    ]
    random.Random(f"{chosen.name}:{number}").shuffle(documents)
    return chosen.question.with_documents(tuple(documents))


def _words(pool: Sequence[Document], place: int) -> Iterator[str]:
    """A document's words, and then those of documents far from it, without end."""
    step = 0
    while True:
        yield from pool[(place + step * (len(pool) // 2 + 1)) % len(pool)].text.split()
        step += 1
