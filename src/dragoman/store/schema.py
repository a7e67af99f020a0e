"""The final schema: every table, printed from here into migrations and compared with the live database.

Columns are described where the name does not say it. State columns carry a CHECK printed from
`machines/tables.py`. Workspace is the first column of every index that serves a caller; claim indexes begin
with what the claim orders by.
"""

from __future__ import annotations

import sqlalchemy as sa

from dragoman.store.portable import NAMES
from dragoman.store.tables_effects import effects_tables
from dragoman.store.tables_engine import engine_tables
from dragoman.store.tables_publishing import publishing_tables
from dragoman.store.tables_runs import run_tables
from dragoman.store.tables_site import site_tables

metadata = sa.MetaData(naming_convention=NAMES)

site = site_tables(metadata)
engine = engine_tables(metadata)
effects = effects_tables(metadata)
publishing = publishing_tables(metadata)
convergence = run_tables(metadata)
