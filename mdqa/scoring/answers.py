"""Answer metrics as the official scripts compute them: pure, unrounded, one function per metric.

``METRICS`` names them as ``metric_cases.jsonl`` does; every one was checked against the outputs of the official script.
A metric of answers is called with the prediction and the list of accepted answers and takes the best over the answers.
The scripts differ in details (punctuation, yes and no, empty texts), and so do the functions here.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from mdqa.records import RunResult

AnswerMetric = Callable[[str, Sequence[str]], float]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)
_TRIVIA_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation + "‘’´`", " "))
_CLOSED_ANSWERS = frozenset({"yes", "no", "noanswer"})


def normalize(text: str) -> str:
    """SQuAD's normal form: lower case, ASCII punctuation removed, articles removed, single spaces.

    Typographic quotes and dashes stay; "1961-1965" becomes "19611965" (SQuAD evaluate-v1.1).
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_ASCII_PUNCTUATION)).split())


def normalize_triviaqa(text: str) -> str:
    """TriviaQA's normal form: as SQuAD's, but punctuation and underscores become spaces (triviaqa_evaluation.py)."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_TRIVIA_PUNCTUATION)).split())


def best_subspan_em(prediction: str, answers: Sequence[str]) -> float:
    """1.0 if any answer is a substring of the prediction, both normalised (lost-in-the-middle metrics.py).

    The whole prediction counts; the script that calls the metric cuts it first, see
    :func:`best_subspan_em_first_line`.
    """
    text = normalize(prediction)
    return float(any(normalize(answer) in text for answer in answers))


def best_subspan_em_first_line(prediction: str, answers: Sequence[str]) -> float:
    """:func:`best_subspan_em` of the text before the first line feed, as lost-in-the-middle's script scores replies."""
    return best_subspan_em(first_line(prediction), answers)


def first_line(prediction: str) -> str:
    """The text before the first line feed; empty if it begins with one (lost-in-the-middle)."""
    return prediction.split("\n", 1)[0]


def exact_match(prediction: str, answers: Sequence[str]) -> float:
    """1.0 if the prediction equals an answer in SQuAD's normal form (SQuAD v1.1, HotpotQA, 2Wiki, MuSiQue)."""
    return float(normalize(prediction) in {normalize(answer) for answer in answers})


def exact_match_strict(prediction: str, answers: Sequence[str]) -> float:
    """1.0 if equal after lower-casing and single spaces only (MADARA section 5.4 as worded)."""
    return float(_plain(prediction) in {_plain(answer) for answer in answers})


def exact_match_triviaqa(prediction: str, answers: Sequence[str]) -> float:
    """1.0 if the prediction equals an answer in TriviaQA's normal form."""
    return float(normalize_triviaqa(prediction) in {normalize_triviaqa(answer) for answer in answers})


def f1(prediction: str, answers: Sequence[str]) -> float:
    """Token F1 over multisets in SQuAD's normal form, best over the answers; 0 where nothing is shared (SQuAD v1.1)."""
    return _best(prediction, answers, lambda p, a: _overlap(normalize(p).split(), normalize(a).split())[0])


def exact_match_squad_v2(prediction: str, answers: Sequence[str]) -> float:
    """SQuAD v2: answers without a normal form are left out; where none is left, the empty prediction is right."""
    return exact_match(prediction, _answerable(answers))


def f1_squad_v2(prediction: str, answers: Sequence[str]) -> float:
    """SQuAD v2: as :func:`f1_empty_equal` with the answers of :func:`exact_match_squad_v2`."""
    return f1_empty_equal(prediction, _answerable(answers))


def f1_empty_equal(prediction: str, answers: Sequence[str]) -> float:
    """Token F1 where two empty texts are equal: 1.0 if both have no token, 0.0 if one has none (MuSiQue)."""

    def one(p: str, a: str) -> float:
        left, right = normalize(p).split(), normalize(a).split()
        return _overlap(left, right)[0] if left and right else float(left == right)

    return _best(prediction, answers, one)


def f1_triviaqa(prediction: str, answers: Sequence[str]) -> float:
    """Token F1 in TriviaQA's normal form."""
    return _best(
        prediction, answers, lambda p, a: _overlap(normalize_triviaqa(p).split(), normalize_triviaqa(a).split())[0]
    )


def f1_hotpotqa(prediction: str, answers: Sequence[str]) -> float:
    """Token F1; 0 where one side is yes, no or noanswer and the other differs (HotpotQA, 2WikiMultihopQA)."""
    return _best(prediction, answers, lambda p, a: _hotpotqa(p, a)[0])


def precision_hotpotqa(prediction: str, answers: Sequence[str]) -> float:
    """The precision behind :func:`f1_hotpotqa`."""
    return _best(prediction, answers, lambda p, a: _hotpotqa(p, a)[1])


def recall_hotpotqa(prediction: str, answers: Sequence[str]) -> float:
    """The recall behind :func:`f1_hotpotqa`."""
    return _best(prediction, answers, lambda p, a: _hotpotqa(p, a)[2])


class Accepted:
    """Accepted answers in normal form, to score many predictions: each text is then normalised once.

    ``score`` gives :func:`best_subspan_em`, :func:`f1` and :func:`exact_match` of a prediction, in this order.
    """

    def __init__(self, answers: Sequence[str]) -> None:
        self._answers = [normalize(answer) for answer in answers]
        self._tokens = [answer.split() for answer in self._answers]

    def score(self, prediction: str) -> tuple[float, float, float]:
        """SubEM, F1 and EM, each in [0, 1]; 0 without accepted answers."""
        text = normalize(prediction)
        tokens = text.split()
        return (
            float(any(answer in text for answer in self._answers)),
            max((_overlap(tokens, answer)[0] for answer in self._tokens), default=0.0),
            float(text in self._answers),
        )


def string_match_part(prediction: str, answers: Sequence[str]) -> float:
    """100 if any answer is a lower-cased substring of the prediction (RULER, in percent as published)."""
    text = prediction.lower()
    return 100.0 * any(answer.lower() in text for answer in answers)


def string_match_all(prediction: str, answers: Sequence[str]) -> float:
    """Share of the answers that are lower-cased substrings, in percent (RULER); 0 without answers."""
    text = prediction.lower()
    return 100.0 * sum(answer.lower() in text for answer in answers) / len(answers) if answers else 0.0


def longbench_first_line(prediction: str) -> str:
    """What LongBench scores of a reply for its few-shot tasks (TriviaQA ...): the first line after line feeds."""
    return prediction.lstrip("\n").split("\n")[0]


def longbench_f1_first_line(prediction: str, answers: Sequence[str]) -> float:
    """:func:`f1` of :func:`longbench_first_line` (LongBench's TriviaQA)."""
    return f1(longbench_first_line(prediction), answers)


def longbench_retrieval(prediction: str, answers: Sequence[str]) -> float:
    """Share of the numbers in the prediction that are the paragraph's ("Paragraph 7"); 0 without numbers (LongBench).

    Best over the answers; one that names no paragraph counts 0.
    """

    def one(p: str, answer: str) -> float:
        named = re.search(r"Paragraph (\d+)", answer)
        return _share(p, named[1]) if named else 0.0

    return _best(prediction, answers, one)


def longbench_count(prediction: str, answers: Sequence[str]) -> float:
    """Share of the numbers in the prediction that are the answer; 0 without numbers (LongBench passage_count)."""
    return _best(prediction, answers, _share)


def supporting_facts(prediction: Iterable[Any], facts: Iterable[Any]) -> tuple[float, float, float, float]:
    """Exact match, F1, precision and recall of (title, sentence) pairs as sets (HotpotQA update_sp)."""
    got, wanted = {tuple(fact) for fact in prediction}, {tuple(fact) for fact in facts}
    common = len(got & wanted)
    precision = common / len(got) if got else 0.0
    recall = common / len(wanted) if wanted else 0.0
    return float(got == wanted), _harmonic(precision, recall), precision, recall


@dataclass(frozen=True)
class Joint:
    """HotpotQA's joint measures of one question: both the answer and its supporting facts have to be right."""

    em: float
    f1: float
    precision: float
    recall: float


def joint_hotpotqa(prediction: str, answer: str, got: Iterable[Any], facts: Iterable[Any]) -> Joint:
    """Answer and supporting facts together (HotpotQA hotpot_evaluate_v1; 2WikiMultihopQA's has evidence in addition).

    Exact match, precision and recall are the products of both sides; F1 is the harmonic mean of the joint precision
    and recall, and not the product of the two F1.
    """
    _, answer_precision, answer_recall = _hotpotqa(prediction, answer)
    sp_em, _, sp_precision, sp_recall = supporting_facts(got, facts)
    precision, recall = answer_precision * sp_precision, answer_recall * sp_recall
    return Joint(exact_match(prediction, [answer]) * sp_em, _harmonic(precision, recall), precision, recall)


def _share(prediction: str, number: str) -> float:
    """Share of the runs of digits in a text that are this one, as text."""
    found = re.findall(r"\d+", prediction)
    return found.count(number) / len(found) if found else 0.0


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def _answerable(answers: Sequence[str]) -> Sequence[str]:
    return [answer for answer in answers if normalize(answer)] or [""]


def _best(prediction: str, answers: Sequence[str], score: Callable[[str, str], float]) -> float:
    return max((score(prediction, answer) for answer in answers), default=0.0)


def _harmonic(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _overlap(prediction: list[str], answer: list[str]) -> tuple[float, float, float]:
    """F1, precision and recall of two token lists as multisets."""
    if set(answer).isdisjoint(prediction):  # most wrong answers, and counting takes longer
        return 0.0, 0.0, 0.0
    common = sum((Counter(prediction) & Counter(answer)).values())
    precision, recall = common / len(prediction), common / len(answer)
    return _harmonic(precision, recall), precision, recall


def _hotpotqa(prediction: str, answer: str) -> tuple[float, float, float]:
    left, right = normalize(prediction), normalize(answer)
    if left != right and (left in _CLOSED_ANSWERS or right in _CLOSED_ANSWERS):
        return 0.0, 0.0, 0.0
    return _overlap(left.split(), right.split())


def says_an_answer(prediction: str, answers: Sequence[str]) -> bool | None:
    """Whether an accepted answer stands in the prediction (SubEM); None where none is known."""
    return best_subspan_em(prediction, answers) > 0 if answers else None


def run_is_right(run: RunResult) -> bool | None:
    """Whether a run's answer contains an accepted one; None if none is known or the run did not end well."""
    return says_an_answer(run.answer, run.question.answers) if run.status == "ok" else None


HEADLINE: Mapping[str, AnswerMetric] = MappingProxyType({"sub_em": best_subspan_em, "f1": f1, "em": exact_match})
"""The metrics that every report has, all in [0, 1]; SubEM and F1 are those of CAFE, section 5.1."""

METRICS: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType(
    {
        "best_subspan_em": best_subspan_em,
        "best_subspan_em_first_line": best_subspan_em_first_line,
        "exact_match": exact_match,
        "exact_match_strict": exact_match_strict,
        "f1": f1,
        "squad_v1_em": exact_match,
        "squad_v1_f1": f1,
        "squad_v2_em": exact_match_squad_v2,
        "squad_v2_f1": f1_squad_v2,
        "hotpot_em": exact_match,
        "hotpot_f1": f1_hotpotqa,
        "hotpot_precision": precision_hotpotqa,
        "hotpot_recall": recall_hotpotqa,
        "hotpot_sp_em": lambda prediction, facts: supporting_facts(prediction, facts)[0],
        "hotpot_sp_f1": lambda prediction, facts: supporting_facts(prediction, facts)[1],
        "hotpot_sp_prec": lambda prediction, facts: supporting_facts(prediction, facts)[2],
        "hotpot_sp_recall": lambda prediction, facts: supporting_facts(prediction, facts)[3],
        "2wiki_em": exact_match,
        "2wiki_f1": f1_hotpotqa,
        "musique_em": exact_match,
        "musique_f1": f1_empty_equal,
        "triviaqa_em": exact_match_triviaqa,
        "triviaqa_f1": f1_triviaqa,
        "longbench_qa_f1": f1,
        "longbench_qa_f1_first_line": longbench_f1_first_line,
        "longbench_retrieval": longbench_retrieval,
        "longbench_count": longbench_count,
        "ruler_string_match_part": string_match_part,
        "ruler_string_match_all": string_match_all,
        "normalize_squad": lambda text, _: normalize(text),
        "normalize_triviaqa": lambda text, _: normalize_triviaqa(text),
    }
)
"""Every metric by the name that metric cases use; called with (prediction, answers)."""
