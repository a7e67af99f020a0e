"""A TCP proxy that loses what it is told to lose, at named moments, before any server.

A rule looks at the bytes that a client sends. Where they hold its marker it acts once: `cut_before` drops
them with the connection, so that the server never sees them; `cut_answer` lets them through, waits until the
server has answered, and drops the answer with the connection. PostgreSQL knows a statement that it was given
before by a name: the proxy does so, too.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Deed = Literal["cut_before", "cut_answer"]
_PREPARED = re.compile(rb"P.{4}([^\0]+)(\0[^\0]+\0)", re.DOTALL)
"""PostgreSQL's Parse: length, name, statement."""


@dataclass(eq=False)
class Rule:
    """One thing to lose, and the moment at which it was lost."""

    marker: bytes
    deed: Deed
    happened: threading.Event = field(default_factory=threading.Event)


@dataclass(eq=False)
class _Pair:
    """One client's connection and the one behind it."""

    client: socket.socket
    server: socket.socket
    muted: threading.Event = field(default_factory=threading.Event)
    answered: threading.Event = field(default_factory=threading.Event)
    prepared: dict[bytes, bytes] = field(default_factory=dict)
    """Statement by the name that a message calls it by."""

    def learn(self, data: bytes) -> None:
        """Remember the names that a message gives to statements."""
        self.prepared |= {b"\0" + name + b"\0": statement for name, statement in _PREPARED.findall(data)}

    def holds(self, marker: bytes, data: bytes) -> bool:
        """Whether a message is what a rule waits for."""
        named = (name for name, statement in self.prepared.items() if statement.endswith(b"\0" + marker))
        return marker in data or any(name in data for name in named)

    def drop(self) -> None:
        """End both, now."""
        for end in (self.client, self.server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class Proxy:
    """Listens on a free port of 127.0.0.1 and passes everything on to one server."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._rules: list[Rule] = []
        self._pairs: list[_Pair] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def port(self) -> int:
        """Where clients connect."""
        return int(self._listener.getsockname()[1])

    def on(self, marker: bytes, deed: Deed) -> Rule:
        """Lose the next message that holds `marker`."""
        rule = Rule(marker, deed)
        self._rules.append(rule)
        return rule

    def forget(self) -> None:
        """Lose nothing more; what was not met yet passes."""
        self._rules.clear()

    def cut_all(self) -> None:
        """Drop every connection, as a server does that restarts."""
        for pair in self._pairs:
            pair.drop()

    def refuse(self) -> None:
        """Take no new connection, as a server does that is gone."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def close(self) -> None:
        """Stop listening and drop everything."""
        self.refuse()
        self.cut_all()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                pair = _Pair(client, socket.create_connection(self._target))
            except OSError:
                client.close()
                continue
            self._pairs.append(pair)
            for pump in (self._upstream, self._downstream):
                thread = threading.Thread(target=pump, args=(pair,))
                self._threads.append(thread)
                thread.start()

    def _upstream(self, pair: _Pair) -> None:
        """From client to server, watching for the moments."""
        for data in _received(pair.client):
            pair.learn(data)
            rule = next((rule for rule in self._rules if pair.holds(rule.marker, data)), None)
            if rule is None:
                with contextlib.suppress(OSError):
                    pair.server.sendall(data)
                continue
            self._rules.remove(rule)
            if rule.deed == "cut_answer":
                pair.muted.set()
                pair.server.sendall(data)
                pair.answered.wait(10)
            rule.happened.set()  # first: whoever sees the cut may look at once
            pair.drop()
            return
        pair.drop()

    def _downstream(self, pair: _Pair) -> None:
        """From server to client."""
        for data in _received(pair.server):
            if pair.muted.is_set():
                pair.answered.set()
                return
            with contextlib.suppress(OSError):
                pair.client.sendall(data)
        pair.drop()


def _received(source: socket.socket) -> Iterator[bytes]:
    while True:
        try:
            data = source.recv(65536)
        except OSError:
            return
        if not data:
            return
        yield data
