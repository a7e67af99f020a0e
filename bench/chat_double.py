"""A chat server that is leaner than any client: `python -m bench.chat_double SECONDS` prints its base URL.

A raw protocol of asyncio. It answers each request that long after it came, every item with its text in
capitals. A GET answers `{"calls": …, "in_flight_most": …}`. Checks nothing: it is there to be fast.
"""

from __future__ import annotations

import asyncio
import json
import sys

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
_LENGTH = b"content-length:"


class Tally:
    """What the server has seen."""

    calls = 0
    in_flight = 0
    in_flight_most = 0


class Conversation(asyncio.Protocol):
    """One connection."""

    def __init__(self, seconds: float, tally: Tally) -> None:
        self._seconds = seconds
        self._tally = tally
        self._kept = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember whom to answer."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take every request that is whole."""
        self._kept += data
        while (end := self._kept.find(b"\r\n\r\n")) >= 0:
            head = self._kept[:end].lower()
            at = head.find(_LENGTH)
            length = int(head[at + len(_LENGTH) :].partition(b"\r\n")[0]) if at >= 0 else 0
            if len(self._kept) < end + 4 + length:
                return
            body, self._kept = self._kept[end + 4 : end + 4 + length], self._kept[end + 4 + length :]
            if head.startswith(b"post"):
                self._take(body)
            else:
                told = {"calls": self._tally.calls, "in_flight_most": self._tally.in_flight_most}
                self._send(json.dumps(told).encode())

    def _take(self, body: bytes) -> None:
        tally = self._tally
        tally.calls += 1
        tally.in_flight += 1
        tally.in_flight_most = max(tally.in_flight_most, tally.in_flight)
        asyncio.get_running_loop().call_later(self._seconds, self._answer, answer_to(body))

    def _answer(self, body: bytes) -> None:
        self._tally.in_flight -= 1
        self._send(body)

    def _send(self, body: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(_HEAD % len(body) + body)


def answer_to(body: bytes) -> bytes:
    """The completion that answers a request."""
    asked = json.loads(json.loads(body)["messages"][-1]["content"])
    items = [{"id": item["id"], "text": item["text"].upper()} for item in asked["items"]]
    message = {"role": "assistant", "content": json.dumps({"items": items})}
    completion = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 400, "completion_tokens": 400, "total_tokens": 800},
    }
    return json.dumps(completion).encode()


async def serve(seconds: float) -> None:
    """Serve until terminated."""
    tally = Tally()
    server = await asyncio.get_running_loop().create_server(
        lambda: Conversation(seconds, tally), "127.0.0.1", 0, backlog=1024
    )
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
