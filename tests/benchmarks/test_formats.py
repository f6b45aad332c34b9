"""Every published format: recognised by content and read into our records. The samples are made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mdqa.benchmarks.base import Loaded, load, load_bytes, read_questions
from mdqa.errors import ConfigError, InputError
from mdqa.records import Question

NQ = {
    "question": "who wrote the tide tables",
    "answers": ["Ada Moor"],
    "ctxs": [
        {"id": "71", "title": "Tides", "text": "Tides rise.", "score": "1.0", "hasanswer": False, "isgold": False},
        {"id": None, "title": "Ada Moor", "text": "She wrote the tables.", "hasanswer": True, "isgold": True},
    ],
    "nq_annotated_gold": {"title": "Ada Moor", "chunked_long_answer": "She wrote the tables.", "long_answer": "She."},
}
HOTPOT = {
    "_id": "5a",
    "question": "Which is older?",
    "answer": "Alpha",
    "type": "comparison",
    "level": "hard",
    "supporting_facts": [["Alpha", 0], ["Beta", 1]],
    "context": [["Alpha", ["Built 1900.", " Tall."]], ["Gamma", ["A letter."]], ["Beta", ["Old.", " Built 1950."]]],
}
HOTPOT_HUB = {
    "id": "5b",
    "question": "Which is older?",
    "answer": "Alpha",
    "supporting_facts": {"title": ["Alpha"], "sent_id": [0]},
    "context": {"title": ["Alpha", "Beta"], "sentences": [["Built 1900."], ["Built 1950."]]},
}
TWOWIKI = {**HOTPOT, "_id": "2w", "evidences": [["Alpha", "built", "1900"]]}
MUSIQUE = {
    "id": "2hop__1",
    "question": "Where was the founder born?",
    "answer": "Velm",
    "answer_aliases": ["Velm town", "Velm"],
    "answerable": True,
    "question_decomposition": [{"id": 1, "question": "founder?", "answer": "Ida", "paragraph_support_idx": 0}],
    "paragraphs": [
        {"idx": 0, "title": "Ida", "paragraph_text": "Ida was born in Velm.", "is_supporting": True},
        {"idx": 1, "title": "Sea", "paragraph_text": "Salty.", "is_supporting": False},
    ],
}
SQUAD = {
    "version": "v2.0",
    "data": [
        {
            "title": "North_Sea",
            "paragraphs": [
                {
                    "context": f"Paragraph {i} speaks of ships.",
                    "qas": [
                        {
                            "id": f"s{i}",
                            "question": f"What is in {i}?",
                            "answers": [{"text": f"Paragraph {i}", "answer_start": 0}],
                        }
                    ],
                }
                for i in range(14)
            ],
        }
    ],
}
SQUAD["data"][0]["paragraphs"][3]["qas"].append(  # type: ignore[index]
    {"id": "none", "question": "Who?", "answers": [], "is_impossible": True}
)
SQUAD_HUB = {
    "id": "h1",
    "title": "Sea",
    "context": "The sea is salty.",
    "question": "How is it?",
    "answers": {"text": ["salty", "salty"], "answer_start": [11, 11]},
}
FEVER = {"id": 1033, "label": "SUPPORTS", "claim": "Java is an island.", "evidence_sentence": "Java is an island."}
RAMDOCS = {
    "question": "What is the population of Orr?",
    "documents": [
        {"text": "Orr, Utah, has 300 people.", "type": "correct", "answer": "300"},
        {"text": "Orr has 9 people.", "type": "misinfo", "answer": "9"},
        {"text": "Orr is windy.", "type": "noise", "answer": "unknown"},
    ],
    "disambig_entity": ["Orr, Utah"],
    "gold_answers": ["300"],
    "wrong_answers": ["9"],
}


def one(record: Any, **options: Any) -> Question:
    loaded = load_bytes(json.dumps(record).encode(), "sample.jsonl", **options)
    assert loaded.problems == ()
    assert len(loaded.questions) == 1
    return loaded.questions[0]


def test_lost_in_the_middle() -> None:
    question = one(NQ)
    assert question.id.startswith("nq-")
    assert question.gold_ids == ("d2",)
    assert question.documents[0].title == "Tides"
    assert question.meta["gold_position"] == [1]
    assert question.meta["document_fields"]["d1"]["id"] == "71"
    assert one(NQ).id == one({**NQ, "ctxs": NQ["ctxs"][::-1]}).id  # type: ignore[index]


def test_lost_in_the_middle_oracle() -> None:
    question = one({name: value for name, value in NQ.items() if name != "ctxs"})
    assert [(d.title, d.text, d.gold) for d in question.documents] == [("Ada Moor", "She wrote the tables.", True)]


def test_hotpotqa() -> None:
    question = one(HOTPOT)
    assert (question.id, question.answers, question.gold_ids) == ("5a", ("Alpha",), ("d1", "d3"))
    assert question.documents[0].text == "Built 1900. Tall."
    assert question.meta["dataset"] == "hotpotqa"
    assert question.meta["supporting_facts"] == [["Alpha", 0], ["Beta", 1]]
    assert one(HOTPOT_HUB).gold_ids == ("d1",)


def test_hotpotqa_without_facts_has_no_gold_marks() -> None:
    test_record = {name: value for name, value in HOTPOT.items() if name not in ("supporting_facts", "answer")}
    question = one(test_record)
    assert {document.gold for document in question.documents} == {None}
    assert question.answers == ()


def test_2wikimultihopqa() -> None:
    question = one(TWOWIKI)
    assert question.meta["dataset"] == "2wikimultihopqa"
    assert question.gold_ids == ("d1", "d3")


def test_musique() -> None:
    question = one(MUSIQUE)
    assert (question.answers, question.gold_ids) == (("Velm", "Velm town"), ("d1",))
    unanswerable = one({**MUSIQUE, "answerable": False})
    assert unanswerable.answers == ()
    assert unanswerable.meta["unanswerable_reference"] == ["Velm", "Velm town"]


def test_squad_gives_distractors_by_bm25() -> None:
    loaded = load_bytes(json.dumps(SQUAD).encode(), "train.json")
    by_id = {question.id: question for question in loaded.questions}
    assert len(by_id) == 15
    assert {len(question.documents) for question in by_id.values()} == {10}
    for i in range(14):
        (gold,) = by_id[f"s{i}"].gold_ids
        assert by_id[f"s{i}"].document(gold).text == f"Paragraph {i} speaks of ships."
        assert by_id[f"s{i}"].document_ids.index(gold) == by_id[f"s{i}"].meta["gold_position"]
        others = [document.text for document in by_id[f"s{i}"].documents if document.id != gold]
        assert not any(f"Paragraph {i}" in text for text in others), "a distractor with the answer is evidence"
    assert by_id["none"].gold_ids == ()
    assert by_id["none"].answers == ()
    assert by_id["s0"].documents[0].title == "North Sea"


def test_squad_keeps_good_questions_beside_a_bad_one() -> None:
    data = json.loads(json.dumps(SQUAD))
    del data["data"][0]["paragraphs"][2]["qas"][0]["question"]
    loaded = load_bytes(json.dumps(data, indent=1).encode(), "train.json")
    assert len(loaded.questions) == 14
    assert [p.place for p in loaded.errors] == ["train.json, article 1, paragraph 3, question 1, field 'question'"]


def test_squad_ranks_the_whole_set_and_leaves_out_what_cannot_be_read() -> None:
    def article(title: str, *contexts: str) -> dict[str, object]:
        qas = [{"id": f"{title}0", "question": "Who sailed the wide sea?", "answers": [{"text": "Ida"}]}]
        return {
            "title": title,
            "paragraphs": [{"context": c, "qas": qas if not i else []} for i, c in enumerate(contexts)],
        }

    data = [
        article("A", "Ida sailed.", "Bread is baked."),
        article("B", "Olga baked.", "The wide sea is wide.", "Ida is known in the wide sea."),
        {"title": "C", "paragraphs": [{"context": "", "qas": []}, {"context": "The sea.", "qas": [7]}]},
        "D",
    ]
    data[1]["paragraphs"][0]["qas"][0]["answers"] = [{"text": "Olga"}]  # type: ignore[index]
    loaded = load_bytes(json.dumps({"version": "1", "data": data}).encode(), "dev.json")
    first = loaded.questions[0]
    others = [document.text for document in first.documents if not document.gold]
    assert others == ["The wide sea is wide.", "The sea.", "Bread is baked.", "Olga baked."]
    assert first.documents[first.meta["gold_position"]].text == "Ida sailed."
    assert [problem.place for problem in loaded.errors] == [
        "dev.json, line 1, article 3, paragraph 1, field 'context'",
        "dev.json, line 1, article 3, paragraph 2, field 'qas[0]'",
        "dev.json, line 1, article 4, field 'data'",
    ]
    assert load_bytes(json.dumps({"version": "1", "data": data}).encode(), "x.json").questions == loaded.questions


def test_squad_one_record_per_question() -> None:
    question = one(SQUAD_HUB)
    assert (question.answers, question.gold_ids) == (("salty",), ("d1",))


def test_fever() -> None:
    question = one(FEVER)
    assert (question.id, question.question, question.answers) == ("1033", "Java is an island.", ("SUPPORTS",))
    assert question.gold_ids == ("d1",)
    triples = {**FEVER, "evidence_sentence": None, "evidence": [["Java_(island)", 0, "Java is large."]]}
    assert one(triples).documents[0].title == "Java (island)"


def test_fever_without_texts_says_what_is_missing() -> None:
    published = {"id": 1, "claim": "x", "label": "REFUTES", "evidence": [[[9, 8, "Java", 0]]]}
    (problem,) = load_bytes(json.dumps(published).encode(), "dev.jsonl").problems
    assert "wiki-pages" in problem.message


def test_ramdocs() -> None:
    question = one(RAMDOCS)
    assert (question.answers, question.gold_ids) == (("300",), ("d1",))
    assert question.meta["wrong_answers"] == ["9"]
    assert question.meta["document_fields"]["d2"] == {"type": "misinfo", "answer": "9"}
    assert question.meta["answer_semantics"] == "all_required"


def test_our_own_format_keeps_what_it_does_not_know() -> None:
    record = {
        "id": 7,
        "question": "Who?",
        "answers": "Ida",
        "documents": ["Ida did.", {"id": 4, "text": "Not she.", "title": None, "gold": True, "source": "web"}],
        "dataset": "mine",
        "extra_documents": [{"text": "more"}],
        "meta": {"note": 1},
    }
    question = one(record)
    assert (question.id, question.answers, question.document_ids) == ("7", ("Ida",), ("d1", "4"))
    assert question.meta == {
        "dataset": "mine",
        "extra_documents": [{"text": "more"}],
        "document_fields": {"4": {"source": "web"}},
        "note": 1,
    }


def test_a_record_without_an_id_gets_the_same_one_anywhere() -> None:
    record = {"question": "Who?", "documents": ["Ida."]}
    assert one(record).id == one({**record, "dataset": "other"}).id


def test_a_format_can_be_named() -> None:
    assert one(FEVER, format="fever").question == "Java is an island."
    (problem,) = load_bytes(json.dumps(FEVER).encode(), "x.jsonl", format="musique").problems
    assert "field 'question': is missing; the record has the fields id, label, claim" in str(problem)
    with pytest.raises(ConfigError, match=r"unknown format 'trivia'.*lost_in_the_middle"):
        load_bytes(b"{}", "x.jsonl", format="trivia")
    with pytest.raises(ConfigError, match="unknown format"):
        next(read_questions("nowhere.jsonl", format="trivia"))


SHARED = Path(__file__).parents[3] / "shared" / "data"
COUNTS = {
    "nq20": 216,
    "nq20_bm25pool": 117,
    "hotpotqa": 152,
    "musique": 167,
    "2wikimultihopqa": 85,
    "squad_multidoc": 119,
    "ramdocs": 236,
    "clapnq": 171,
    "fever_symmetric": 166,
}


@pytest.mark.parametrize(("name", "count"), COUNTS.items())
def test_the_shared_sets_load_whole(name: str, count: int) -> None:
    path = SHARED / f"{name}.jsonl.gz"
    if not path.exists():
        pytest.skip(f"the evaluation data are not here: {path}")
    loaded: Loaded = load(path)
    assert (len(loaded.questions), loaded.errors) == (count, ())
    assert [question.id for question in read_questions(path, limit=3)] == [q.id for q in loaded.questions[:3]]


def test_read_questions_stops_at_the_first_error(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(FEVER) + '\n{"claim": ""}\n', encoding="utf-8")
    reading = read_questions(path)
    assert next(reading).id == "1033"
    with pytest.raises(InputError, match=r"x\.jsonl, line 2, field 'claim': is empty"):
        next(reading)
