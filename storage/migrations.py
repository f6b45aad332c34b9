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


def m006_studies(db: Database) -> None:
    """Studies of a run, each with its settings once, and the runs that they had carried out.

    A study goes with its base run. A run is a member of one study at most; its row goes with it.
    """
    db.executescript("""
        create table studies (
            id text primary key, kind text not null, base text not null references runs(id) on delete cascade,
            created text not null, made_by text not null, about text not null, unique (base, kind, about)
        );
        create index studies_base on studies(base, created);
        create index studies_created on studies(created);
        create table study_runs (
            id integer primary key autoincrement, study text not null references studies(id) on delete cascade,
            run text not null unique references runs(id) on delete cascade, key text not null,
            detail text not null, created text not null
        );
        create index study_runs_study on study_runs(study, id);
        create trigger studies_stay before update on studies
            begin select raise(abort, 'a study is never changed; begin another one'); end;
        create trigger study_runs_stay before update on study_runs
            begin select raise(abort, 'a member is never changed; add another one'); end;
    """)


def m007_run_facets(db: Database) -> None:
    """What lists of runs are filtered and sorted by, in narrow rows beside the runs, and filters with a name.

    A run and its row come and go together. The row repeats of the run what never changes, and by triggers what its
    end says, so that no list has to walk over the runs themselves, whose records are long. ``version`` is 0 until the
    facets of the run were worked out (of older runs that is later). A filter is the JSON of its fields.
    """
    db.executescript("""
        create table run_facets (
            run text primary key references runs(id) on delete cascade, created text not null, method text not null,
            model text not null, status text not null, question integer not null, correct integer,
            seconds real not null, llm_calls integer not null, benchmark text not null default '',
            diagnosis text not null default '', stage text not null default '', agents integer not null default 0,
            judge integer not null default 0, treatments integer not null default 0, votes integer not null default 0,
            margin real, version integer not null default 0
        ) without rowid;
        insert into run_facets (run, created, method, model, status, question, correct, seconds, llm_calls)
            select id, created, method, model, status, question, correct, seconds, llm_calls from runs;
        create index run_facets_created on run_facets(created, run);
        create index run_facets_seconds on run_facets(seconds, created);
        create index run_facets_llm_calls on run_facets(llm_calls, created);
        create index run_facets_margin on run_facets(margin, created) where margin is not null;
        create index run_facets_nearest on run_facets((margin is null), margin, created desc, run desc);
        create index run_facets_method on run_facets(method, created);
        create index run_facets_model on run_facets(model, created);
        create index run_facets_status on run_facets(status, created);
        create index run_facets_correct on run_facets(correct, created);
        create index run_facets_benchmark on run_facets(benchmark, created);
        create index run_facets_diagnosis on run_facets(diagnosis, created);
        create index run_facets_agents on run_facets(created) where agents = 1;
        create index run_facets_judge on run_facets(created) where judge = 1;
        create index run_facets_treatments on run_facets(created) where treatments = 1;
        create index run_facets_votes on run_facets(created) where votes = 1;
        create index run_facets_question on run_facets(question, created);
        create index run_facets_version on run_facets(version, created);
        create trigger run_facets_begin after insert on runs begin
            insert into run_facets (run, created, method, model, status, question, correct, seconds, llm_calls)
            values (new.id, new.created, new.method, new.model, new.status, new.question, new.correct, new.seconds,
                new.llm_calls);
        end;
        create trigger run_facets_follow after update of status, correct, finished on runs begin
            update run_facets set status = new.status, correct = new.correct, seconds = new.seconds,
                llm_calls = new.llm_calls where run = new.id;
        end;
        create table saved_filters (
            id integer primary key, name text not null collate nocase unique, filter text not null,
            made_by text not null, created text not null
        );
    """)


def m008_labels(db: Database) -> None:
    """Settings of queues in versions, who decides which item, and the log of what people decided.

    An assignment is state: it changes, and goes with its item. The log stays whatever happens to the run; nothing in
    it is ever changed or deleted, and one form (``token``) makes one entry.
    """
    db.executescript("""
        create table queue_settings (
            id integer primary key autoincrement, queue integer not null references queues(id),
            version integer not null, guidelines text not null, overlap integer not null, item_order text not null,
            labels text not null, practice_items text not null, made_by text not null, created text not null,
            unique (queue, version)
        );
        create table assignments (
            id integer primary key autoincrement, token text not null unique,
            item integer not null references queue_items(id) on delete cascade, annotator text not null,
            swapped integer not null, practice integer not null, version integer not null, state text not null,
            label text not null, entry integer, given text not null, expires text not null, unique (item, annotator)
        );
        create index assignments_annotator on assignments(annotator, state, id);
        create table labels (
            id integer primary key autoincrement, token text not null unique, created text not null,
            action text not null, annotator text not null, queue integer not null references queues(id),
            item integer not null, run text not null, label text not null, evidence text not null,
            note text not null, version integer not null, practice integer not null, seconds real not null,
            idle_seconds real not null, swapped integer not null
        );
        create index labels_item on labels(item, annotator, id);
        create index labels_queue on labels(queue, id);
        create index labels_run on labels(run);
        create trigger queue_settings_stay before update on queue_settings
            begin select raise(abort, 'settings are never changed; add a version'); end;
        create trigger queue_settings_remain before delete on queue_settings
            begin select raise(abort, 'settings are never deleted; add a version'); end;
        create trigger labels_stay before update on labels
            begin select raise(abort, 'an entry is never changed; add another one'); end;
        create trigger labels_remain before delete on labels
            begin select raise(abort, 'an entry is never deleted; add another one'); end;
    """)


STEPS: tuple[Callable[[Database], None], ...] = (
    m001_runs,
    m002_attention_maps,
    m003_profiles,
    m004_annotations,
    m005_queues,
    m006_studies,
    m007_run_facets,
    m008_labels,
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
