"""Step 1: the question and its documents, from an example, a pasted text or a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from mdqa.benchmarks.examples import Example, examples
from mdqa.prompting import document_segment
from mdqa.records import Document, Question
from ui.context import Context
from ui.guard import QUIET, guarded
from ui.inputs import (
    FOUND,
    MAX_QUESTION,
    MAX_SEARCH,
    Draft,
    Found,
    LoadedFile,
    file_draft,
    finished_item,
    gold_choices,
    limited,
    load_file,
    paste_draft,
    search_questions,
)
from ui.views.markup import count, empty, plural, text
from ui.views.preview import preview, problems

FILE_TYPES = [".jsonl", ".json", ".csv", ".gz", ".tsv", ".txt"]
PASTE_HINT = (
    "### First title\nText of the first document.\n\n### Second title\nText of the second document.\n\n"
    "Without lines of ### a blank line separates the documents."
)
COUNTED = 400_000
"""Characters up to which tokens are counted for the preview; longer inputs are estimated."""


@dataclass(frozen=True)
class FoundPart:
    """Which part of a loaded file's questions the picker offers, and the buttons to the other parts."""

    start: gr.State
    said: gr.HTML
    row: gr.Row
    back: gr.Button
    more: gr.Button

    @property
    def outputs(self) -> list[Any]:
        """What :meth:`show` fills, in its order."""
        return [self.start, self.said, self.row, self.back, self.more]

    def show(self, found: Found) -> list[Any]:
        """Values for :attr:`outputs`."""
        end = min(found.start + FOUND, found.total)
        words = f"{count(found.start + 1)} to {count(end)} of {plural(found.total, 'question')}"
        if not found.total:
            words = "No question holds all of these words. Try fewer, or a number."
        return [
            found.start,
            text("p", words, "mdqa-note", role="status"),
            gr.Row(visible=found.total > FOUND),
            gr.Button(interactive=found.start > 0),
            gr.Button(interactive=end < found.total),
        ]


@dataclass(frozen=True)
class QuestionInput:
    """The components of step 1; ``draft`` and ``item`` read them on the server."""

    context: Context
    built_in: Mapping[str, Example]
    source: gr.State
    example: gr.Dropdown
    teaches: gr.HTML
    paste: gr.Textbox
    file: gr.File
    loaded: gr.State
    search: gr.Textbox
    index: gr.Dropdown
    found: FoundPart
    question: gr.Textbox
    answers: gr.Textbox
    gold: gr.Dropdown
    preview: gr.HTML

    @property
    def inputs(self) -> set[Any]:
        """Everything a handler needs to know the question."""
        return {
            self.source,
            self.example,
            self.paste,
            self.loaded,
            self.index,
            self.question,
            self.answers,
            self.gold,
        }

    def draft(self, values: Mapping[Any, Any]) -> Draft:
        """The documents of the source that is in front."""
        settings = self.context.settings
        if values[self.source] == "paste":
            return paste_draft(values[self.paste] or "", settings)
        if values[self.source] == "file":
            return file_draft(values[self.loaded], values[self.index], settings)
        chosen = self.built_in.get(values[self.example] or "")
        return limited(chosen.question, settings) if chosen else Draft()

    def item(self, values: Mapping[Any, Any]) -> Question:
        """The question to run; InputError says what is missing."""
        return finished_item(
            self.draft(values), values[self.question] or "", values[self.answers] or "", values[self.gold] or []
        )

    def outputs(self) -> list[Any]:
        """What changes when other documents are in front."""
        return [self.question, self.answers, self.gold, self.preview, self.teaches]


def build_question_input(context: Context) -> QuestionInput:
    """Lay out and wire step 1; the first example is chosen, so that a newcomer can press Run at once."""
    built_in = {example.name: example for example in examples()}
    first = next(iter(built_in.values()))
    item = first.question
    gr.HTML(text("h2", "1 · Question and documents"), apply_default_css=False)
    question = gr.Textbox(
        item.question,
        label="Question",
        lines=2,
        max_length=MAX_QUESTION,
        elem_id="mdqa-question",
        placeholder="What do you want to know?",
    )
    source = gr.State("example")
    loaded = gr.State(LoadedFile(""))
    with gr.Tabs(elem_classes="mdqa-sources"):
        with gr.Tab("Examples", id="example") as example_tab:
            example = gr.Dropdown(
                [(e.title, e.name) for e in built_in.values()],
                value=first.name,
                label="Built-in example",
                elem_id="mdqa-example",
            )
            teaches = gr.HTML(_teaches(first), apply_default_css=False)
        with gr.Tab("Paste", id="paste") as paste_tab:
            paste = gr.Textbox(label="Documents", lines=8, max_lines=18, placeholder=PASTE_HINT, elem_id="mdqa-paste")
        with gr.Tab("File", id="file") as file_tab:
            file = gr.File(
                label="Questions with documents (.jsonl, .json, .csv, also .gz)", file_types=FILE_TYPES, height=110
            )
            search = gr.Textbox(
                label="Search the file's questions",
                placeholder="Words of a question, answer or title, or a number",
                max_length=MAX_SEARCH,
                visible=False,
                elem_id="mdqa-search",
            )
            index = gr.Dropdown([], label="Question of the file", interactive=True, visible=False)
            said = gr.HTML(apply_default_css=False, elem_id="mdqa-found")
            with gr.Row(visible=False, elem_classes="mdqa-pages") as row:
                back, more = gr.Button("Earlier", size="sm"), gr.Button("More", size="sm")
            found = FoundPart(gr.State(0), said, row, back, more)
    gold_ids = list(item.gold_ids)
    shown = gr.HTML(preview(item.documents, gold=gold_ids), apply_default_css=False, elem_id="mdqa-preview")
    with gr.Accordion("Expected answers and gold documents (optional)", open=False):
        answers = gr.Textbox(
            "\n".join(item.answers), label="Expected answers", info="One per line; any of them counts", lines=2
        )
        gold = gr.Dropdown(
            gold_choices(item.documents),
            value=gold_ids,
            multiselect=True,
            label="Gold documents",
            info="Those that hold the evidence",
        )
    parts = QuestionInput(
        context,
        built_in,
        source,
        example,
        teaches,
        paste,
        file,
        loaded,
        search,
        index,
        found,
        question,
        answers,
        gold,
        shown,
    )
    _wire(parts, {"example": example_tab, "paste": paste_tab, "file": file_tab})
    return parts


def _teaches(example: Example | None) -> str:
    return text("p", example.teaches, "mdqa-note") if example else ""


def _wire(parts: QuestionInput, tabs: Mapping[str, gr.Tab]) -> None:
    context = parts.context
    both = parts.outputs()

    def fill(draft: Draft, teaches: str) -> tuple[Any, ...]:
        item, gold = draft.item, list(draft.item.gold_ids)
        box = gr.Dropdown(choices=gold_choices(item.documents), value=gold)
        return item.question, "\n".join(item.answers), box, _preview(context, draft, gold), teaches

    def choose_example(name: str) -> tuple[Any, ...]:
        example = parts.built_in.get(name)
        draft = limited(example.question, context.settings) if example else Draft()
        return fill(draft, _teaches(example))

    def upload(path: str | None) -> tuple[Any, ...]:
        loaded = load_file(path, context.settings)
        if not loaded.questions:
            note = problems(loaded.refused, others=False) or empty("No file loaded", "Load a file of questions first.")
            hidden = [gr.Row(visible=False), gr.skip(), gr.skip()]
            none = [gr.Textbox("", visible=False), gr.Dropdown(choices=[], value=None, visible=False), 0, "", *hidden]
            return loaded, *none, gr.skip(), gr.skip(), gr.skip(), note, gr.skip()
        found = search_questions(loaded)
        picker = [
            gr.Textbox("", visible=len(loaded.questions) > 1),
            gr.Dropdown(choices=list(found.choices), value=0, visible=True),
            *parts.found.show(found),
        ]
        question, answers, gold, shown, _ = fill(file_draft(loaded, 0, context.settings), "")
        note = problems(loaded.refused) + problems(loaded.notices, used=True)
        return loaded, *picker, question, answers, gold, note + shown, gr.skip()

    def turning(step: int) -> Callable[..., list[Any]]:
        """Another page of what the search finds (``step``: -1, 1), or its first page (0)."""

        def turn(loaded: LoadedFile, words: str, chosen: int | None, start: int) -> list[Any]:
            found = search_questions(loaded, words or "", start + step * FOUND if step else 0, chosen)
            return [gr.Dropdown(choices=list(found.choices), value=chosen), *parts.found.show(found)]

        return turn

    def choose_question(loaded: LoadedFile, index: int | None) -> tuple[Any, ...]:
        if index is None:
            return tuple(gr.skip() for _ in both)
        return (*fill(file_draft(loaded, index, context.settings), "")[:4], gr.skip())

    def pasted(text_: str, gold: Sequence[str]) -> tuple[Any, ...]:
        draft = paste_draft(text_ or "", context.settings)
        known = [value for _, value in gold_choices(draft.item.documents)]
        kept = [value for value in gold or [] if value in known]
        return gr.Dropdown(choices=gold_choices(draft.item.documents), value=kept), _preview(context, draft, kept)

    def in_front(name: str, values: Mapping[Any, Any]) -> tuple[Any, ...]:
        draft = parts.draft({**values, parts.source: name})
        gold = list(draft.item.gold_ids)
        box = gr.Dropdown(choices=gold_choices(draft.item.documents), value=gold)
        keep = name == "paste" or not draft.item.documents
        question = gr.skip() if keep else draft.item.question
        answers = gr.skip() if keep else "\n".join(draft.item.answers)
        return name, question, answers, box, _preview(context, draft, gold)

    parts.example.input(guarded(choose_example), parts.example, both, **QUIET)
    picking = [parts.index, *parts.found.outputs]
    parts.file.change(guarded(upload), parts.file, [parts.loaded, parts.search, *picking, *both], **QUIET)
    asked = [parts.loaded, parts.search, parts.index, parts.found.start]
    parts.search.input(guarded(turning(0)), asked, picking, trigger_mode="always_last", **QUIET)
    for step, button in ((-1, parts.found.back), (1, parts.found.more)):
        button.click(guarded(turning(step)), asked, picking, **QUIET)
    parts.index.input(guarded(choose_question), [parts.loaded, parts.index], both, **QUIET)
    parts.paste.blur(guarded(pasted), [parts.paste, parts.gold], [parts.gold, parts.preview], **QUIET)
    changed = [parts.source, parts.question, parts.answers, parts.gold, parts.preview]

    def selecting(name: str) -> Callable[[Mapping[Any, Any]], tuple[Any, ...]]:
        return lambda values: in_front(name, values)

    for name, tab in tabs.items():
        tab.select(guarded(selecting(name)), parts.inputs, changed, **QUIET)


def _preview(context: Context, draft: Draft, gold: Sequence[str]) -> str:
    documents = draft.item.documents
    counted = _tokens(context, documents)
    return preview(
        documents,
        draft.refused,
        tokens=counted[0] if counted else None,
        window=counted[1] if counted else None,
        gold=gold,
    )


def _tokens(context: Context, documents: Sequence[Document]) -> tuple[int, int] | None:
    if sum(len(document.text) for document in documents) > COUNTED:
        return None
    return context.engine.count_tokens([document_segment(i, d).text for i, d in enumerate(documents, 1)])
