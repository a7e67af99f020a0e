"""The same by translate-toolkit, run by its own Python: milliseconds and peak bytes, as JSON."""

from __future__ import annotations

import gc
import json
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

from translate.storage import jsonl10n, pypo  # type: ignore[import-not-found]


def main() -> None:
    """Everything once untimed, so that no import is measured."""
    path = Path(sys.argv[1])

    def read() -> Any:
        return (pypo.pofile if path.suffix == ".po" else jsonl10n.JsonFile).parsefile(str(path))

    def write(store: Any) -> bytes:
        for unit in store.units:
            if not unit.isheader():
                unit.target = f"{unit.source} ü"
        return bytes(store)

    write(read())
    told = {}
    gc.disable()
    warm = read()
    for name, act in (("read", read), ("write", lambda: write(warm))):
        began = time.process_time()
        act()
        told[name] = (time.process_time() - began) * 1000
    gc.enable()
    tracemalloc.start()
    write(read())
    told["peak"] = tracemalloc.get_traced_memory()[1]
    print(json.dumps(told))


if __name__ == "__main__":
    main()
