"""One reading and one writing of a catalogue by us: milliseconds and peak bytes, as JSON."""

from __future__ import annotations

import gc
import json
import sys
import time
import tracemalloc
from pathlib import Path

from dragoman.content.documents import choose_format, open_document, render
from dragoman.content.spans import encode
from dragoman.model.documents import Document
from dragoman.wiring.catalogue import formats


def main() -> None:
    """Everything once untimed, so that no import is measured."""
    path = Path(sys.argv[1])
    data = path.read_bytes()
    form = choose_format(formats(), path.name, data)

    def read() -> Document:
        return open_document(form, path.name, data, "source", "en")

    def write(source: Document) -> bytes:
        return encode(form.write(source, source, wanted, "de").text, source.encoding, source.bom)

    def verified(source: Document) -> bytes:
        return render(form, None, source, wanted, "de").data

    warm = read()
    wanted = {block.key: f"{block.text} ü" for block in warm.blocks}
    verified(warm)
    told: dict[str, float] = {}
    gc.disable()
    for name, act in (("read", read), ("write", lambda: write(warm)), ("verified", lambda: verified(warm))):
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
