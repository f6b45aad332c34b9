"""The schema as its history: numbered steps, each applied in one transaction together with its record.

Append only. A step that was released is never edited; a change of the schema is a new function at the end of
:data:`STEPS`. sqlite-utils keeps the names of the applied steps in the table ``_sqlite_migrations``.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlite_utils import Database
from sqlite_utils.migrations import Migrations

from mdqa.errors import StorageError

SET = "mdqa"


def m001_runs(db: Database) -> None:
    """Documents once by content, questions that list them in order, runs of methods on questions, their traces.

    ``record`` is the run's JSON without its question; it stands last because it is long and lists do not need it.
    ``finished`` is null until the whole result was stored.
    """
    db.executescript("""
        create table documents (
            id integer primary key, hash text not null unique, title text not null, text text not null
        );
        create table questions (
            id integer primary key, hash text not null unique, name text not null, question text not null,
            documents integer not null, answers text not null, meta text not null
        );
        create table question_documents (
            question integer not null references questions(id) on delete cascade, position integer not null,
            document integer not null references documents(id), name text not null, gold integer,
            primary key (question, position)
        ) without rowid;
        create index question_documents_document on question_documents(document);
        create table runs (
            id text primary key, created text not null, updated text not null, finished text, method text not null,
            model text not null, status text not null, question integer not null references questions(id),
            answer text not null default '', correct integer, seconds real not null default 0,
            llm_calls integer not null default 0, owner_host text not null, owner_pid integer not null,
            owner_started text not null, record text not null
        );
        create index runs_created on runs(created, id);
        create index runs_method on runs(method, created, id);
        create index runs_model on runs(model, created, id);
        create index runs_status on runs(status, created, id);
        create index runs_question on runs(question);
        create table events (
            id integer primary key, run text not null references runs(id) on delete cascade, kind text not null,
            at real not null, data not null
        );
        create index events_run on events(run, id);
    """)


def m002_attention_maps(db: Database) -> None:
    """Attention maps: what they are about as JSON, the arrays compressed; ``digest`` tells equal maps of a run."""
    db.executescript("""
        create table attention_maps (
            id integer primary key, run text not null references runs(id) on delete cascade, stage text not null,
            digest text not null, about text not null, mass blob not null, heat blob
        );
        create index attention_maps_run on attention_maps(run, id);
    """)


def m003_profiles(db: Database) -> None:
    """Calibration profiles, one per method, model and name."""
    db.executescript("""
        create table profiles (
            id integer primary key, method text not null, model text not null, name text not null,
            created text not null, record text not null, unique (method, model, name)
        );
    """)


def m004_annotations(db: Database) -> None:
    """The log of what people said of runs. Only the deletion of its run takes a label away, and only on demand.

    ``id`` is the order of the log and never given twice. A form that is saved twice has one ``token``.
    """
    db.executescript("""
        create table annotations (
            id integer primary key autoincrement, token text not null unique, created text not null,
            annotator text not null, run text not null references runs(id), kind text not null, value text not null
        );
        create index annotations_run on annotations(run, kind, annotator, id);
        create trigger annotations_stay before update on annotations
            begin select raise(abort, 'a label is never changed; add another one'); end;
    """)


def m005_queues(db: Database) -> None:
    """Queues of runs to look at. An item is a run in a queue, once; the log says who put it there or took it out.

    Ids of items and entries are never given twice. The index of items by queue ends with their id, which pages a queue.
    """
    db.executescript("""
        create table queues (
            id integer primary key, name text not null collate nocase unique, created text not null,
            note text not null
        );
        create table queue_items (
            id integer primary key autoincrement, queue integer not null references queues(id),
            run text not null references runs(id), unique (queue, run)
        );
        create index queue_items_queue on queue_items(queue, id);
        create index queue_items_run on queue_items(run, id);
        create table queue_log (
            id integer primary key autoincrement, item integer not null references queue_items(id) on delete cascade,
            present integer not null, who text not null, note text not null, created text not null
        );
        create index queue_log_item on queue_log(item, id);
        create trigger queue_log_stays before update on queue_log
            begin select raise(abort, 'an entry is never changed; add another one'); end;
    """)


STEPS: tuple[Callable[[Database], None], ...] = (
    m001_runs,
    m002_attention_maps,
    m003_profiles,
    m004_annotations,
    m005_queues,
)


def migrations() -> Migrations:
    """The steps in order, as sqlite-utils applies them."""
    steps = Migrations(SET)
    for step in STEPS:
        steps(name=step.__name__)(step)
    return steps


def check_file(db: Database) -> None:
    """StorageError if the file belongs to another program or to a newer version of this one. Only reads."""
    applied = [step.name for step in migrations().applied(db)]
    if not applied and (tables := set(db.table_names()) - {Migrations.migrations_table}):
        names = ", ".join(sorted(tables)[:3])
        raise StorageError(f"it is another program's database (tables: {names}); choose another file")
    newer = [name for name in applied if name not in {step.__name__ for step in STEPS}]
    if newer:
        raise StorageError(
            f"it was written by a newer version of mdqa (it has {newer[-1]}, this version ends at "
            f"{STEPS[-1].__name__}); update mdqa or choose another file"
        )


def migrate(db: Database, *, upto: str = STEPS[-1].__name__) -> None:
    """Apply what is missing, up to and including the step ``upto``.

    Every step takes the write lock before it looks at what is missing, so that two programs that open the same new
    file do not both apply it.
    """
    names = [step.__name__ for step in STEPS]
    wanted = names[: names.index(upto) + 1]
    steps, done = migrations(), False
    while not done:
        db.execute("BEGIN IMMEDIATE")
        try:
            applied = {step.name for step in steps.applied(db)}
            pending = [name for name in names if name not in applied]
            if done := not pending or pending[0] not in wanted:
                db.rollback()
            else:
                steps.apply(db, stop_before=pending[1:])
                db.commit()
        except BaseException:
            db.rollback()
            raise
