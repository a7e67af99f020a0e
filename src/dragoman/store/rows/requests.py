"""Rows of `publication_requests` as settlement writes them: these intents are settled, put them in place."""

from __future__ import annotations

import json
from collections.abc import Sequence

from dragoman.store.schema import publishing as tables
from dragoman.store.transaction import Row, Tx


def write(tx: Tx, manifest: Row, intent_ids: Sequence[str], asked: bool = False) -> bool:
    """One request for these intents, where the manifest publishes by itself or somebody `asked` for it."""
    if not intent_ids or not (asked or json.loads(manifest.settings).get("publish") == "auto"):
        return False
    row = {
        "id": tx.new_id(),
        "workspace": manifest.workspace,
        "manifest_id": manifest.id,
        "intents": json.dumps(sorted(intent_ids)),
        "state": "pending",
        "next_attempt_at": tx.now,
        "created_at": tx.now,
        "updated_at": tx.now,
    }
    tx.insert(tables.publication_requests, [row])
    return True
