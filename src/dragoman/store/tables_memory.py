"""Tables of what a project knows: its memory, how it is searched, its terms, and how it wants to sound.

A source text is indexed once for all target locales. The index is made by whoever searches first: the
transaction that closes a paid call writes one small row (`memory_fresh`), and nothing else, for it.
"""

from __future__ import annotations

import sqlalchemy as sa

from dragoman.kernel.limits import LOCALE_CHARS_MAX, STYLE_CHARS_MAX, TERM_CHARS_MAX
from dragoman.store.columns import flag, required, stamps, word
from dragoman.store.portable import Bytes, Count, Hash, Id, Instant, LongText, Word, table


def memory_tables(metadata: sa.MetaData) -> dict[str, sa.Table]:
    """All of them, by name."""
    return {**_memory(metadata), **_search(metadata), **_library(metadata)}


def _scope(*, target: bool = False) -> list[sa.Column[str]]:
    """The head of every key: whose, and of which languages."""
    head = [
        sa.Column("workspace", Word(64), primary_key=True),
        sa.Column("project", Word(128), primary_key=True),
        sa.Column("source_locale", Word(LOCALE_CHARS_MAX), primary_key=True),
    ]
    return [*head, sa.Column("target_locale", Word(LOCALE_CHARS_MAX), primary_key=True)] if target else head


def _memory(metadata: sa.MetaData) -> dict[str, sa.Table]:
    return {
        "memory": table(
            "memory",
            metadata,
            *_scope(target=True),
            sa.Column("source_hash", Hash, primary_key=True),
            sa.Column("context_hash", Hash, primary_key=True),
            required("source", LongText),
            required("text", LongText),
            flag("plural"),
            word("syntax", 16),
            required("origin", Word(16)),  # ai | person | imported
            word("basis", 64),  # what a translation by AI was made from; another basis makes it stale
            word("job_id", 36),
            word("model", 191),
            word("prompt_version", 16),
            word("validator_version", 16),
            *stamps(),
            clustered=True,
        ),
        "trials": table(  # a field that failed its checks in a job: after two jobs it is not asked for again
            "trials",
            metadata,
            sa.Column("workspace", Word(64), primary_key=True),
            sa.Column("trial_key", Hash, primary_key=True),
            sa.Column("job_id", Id, primary_key=True),
            required("created_at", Instant),
            clustered=True,
        ),
    }


def _search(metadata: sa.MetaData) -> dict[str, sa.Table]:
    return {
        "memory_fresh": table(  # source texts that nobody has indexed yet
            "memory_fresh",
            metadata,
            *_scope(),
            sa.Column("source_hash", Hash, primary_key=True),
            required("source", LongText),
            clustered=True,
        ),
        "memory_segments": table(  # what a search compares with; `segment` is the head of the source's hash
            "memory_segments",
            metadata,
            *_scope(),
            sa.Column("segment", Count, primary_key=True, autoincrement=False),
            required("source_hash", Hash),
            required("source", LongText),
            clustered=True,
        ),
        "memory_shelves": table(  # who indexes holds this row; `texts` says which run is open
            "memory_shelves",
            metadata,
            *_scope(),
            required("texts", Count),
            clustered=True,
        ),
        "memory_grams": table(  # which texts hold a gram, many to a row (`postings.py`)
            "memory_grams",
            metadata,
            *_scope(),
            sa.Column("bucket", Count, primary_key=True, autoincrement=False),
            sa.Column("run", Count, primary_key=True, autoincrement=False),
            required("postings", Bytes),
        ),
    }


def _library(metadata: sa.MetaData) -> dict[str, sa.Table]:
    return {
        "terms": table(
            "terms",
            metadata,
            *_scope(target=True),  # an empty target locale stands for all of them
            sa.Column("term_key", Hash, primary_key=True),  # of source, target and status
            required("source", Word(TERM_CHARS_MAX)),
            word("target", TERM_CHARS_MAX),  # empty for what is not translated
            required("status", Word(16)),  # preferred | forbidden | kept
            flag("case_sensitive"),
            word("note", 1000),
            *stamps(),
            clustered=True,
        ),
        "manners": table(  # what a project asks of its translations
            "manners",
            metadata,
            sa.Column("workspace", Word(64), primary_key=True),
            sa.Column("project", Word(128), primary_key=True),
            required("threshold", Count, server_default="100"),  # from which score a match fills a field
            word("style", STYLE_CHARS_MAX),
            *stamps(),
            clustered=True,
        ),
    }
