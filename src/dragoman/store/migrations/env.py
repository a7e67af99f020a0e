"""What Alembic runs: the revisions, on the connection that `migrate.py` opened and locked."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=False)
context.run_migrations()
