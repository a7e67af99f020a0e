"""The numbers of this process, for Prometheus: how long, how often, what came of it. Nobody decides by them.

Like the journal they work before any set-up, and everywhere. Every label has few values that the program
itself names: never a workspace, an id, a document or a text. What the database says of all processes together
is read when somebody asks for it, and handed to `exposition`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

Phase = Literal["decode", "load", "authorization", "transaction", "enqueue"]
Result = Literal["worked", "idle", "gave_way", "failed"]

_FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0)
_SLOW = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0)

_REGISTRY = CollectorRegistry()
ProcessCollector(registry=_REGISTRY)
_ADMISSION = Histogram(
    "dragoman_admission_seconds",
    "What admitting a request takes, by phase",
    ("phase",),
    buckets=_FAST,
    registry=_REGISTRY,
)
_STEPS = Counter(
    "dragoman_loop_steps", "Steps of the loops, by what came of them", ("loop", "result"), registry=_REGISTRY
)
_STEP_SECONDS = Histogram(
    "dragoman_loop_step_seconds",
    "What a step takes that found work",
    ("loop",),
    buckets=_FAST,
    registry=_REGISTRY,
)
_ATTEMPTS = Counter(
    "dragoman_attempts",
    "Attempts at the outside world, by their first outcome",
    ("family", "outcome"),
    registry=_REGISTRY,
)
_ATTEMPT_SECONDS = Histogram(
    "dragoman_attempt_seconds",
    "What one attempt at the outside world takes",
    ("family",),
    buckets=_SLOW,
    registry=_REGISTRY,
)
_LEASES_LOST = Counter(
    "dragoman_leases_lost", "Leases that another holder took", ("table",), registry=_REGISTRY
)
_GATE_SECONDS = Histogram(
    "dragoman_gate_wait_seconds",
    "How long calls wait for their place",
    buckets=(0.0, *_SLOW),
    registry=_REGISTRY,
)
_CALLS = Gauge("dragoman_calls_under_way", "Calls to providers that have their place", registry=_REGISTRY)


class Reading(NamedTuple):
    """Numbers that were read elsewhere: one a combination of label values."""

    name: str
    about: str
    labels: tuple[str, ...]
    numbers: Mapping[tuple[str, ...], float]
    kind: Literal["gauge", "counter"] = "gauge"


@contextmanager
def admitting(phase: Phase) -> Iterator[None]:
    """Times a phase of one admission, also one that refuses."""
    with _ADMISSION.labels(phase).time():
        yield


def step_ended(loop: str, result: Result, seconds: float) -> None:
    """A loop's step has come to its end."""
    _STEPS.labels(loop, result).inc()
    if result == "worked":
        _STEP_SECONDS.labels(loop).observe(seconds)


def attempt_ended(family: str, outcome: str, seconds: float) -> None:
    """One attempt has its first outcome; inquiries may find another one later."""
    _ATTEMPTS.labels(family, outcome).inc()
    _ATTEMPT_SECONDS.labels(family).observe(seconds)


def lease_lost(table: str) -> None:
    """Another holder has taken what this process worked on."""
    _LEASES_LOST.labels(table).inc()


@contextmanager
def calling(waited_seconds: float) -> Iterator[None]:
    """A call has its place as long as this lasts."""
    _GATE_SECONDS.observe(waited_seconds)
    with _CALLS.track_inprogress():
        yield


def number(name: str, **labels: str) -> float:
    """What a series of this process stands at, by its name in the text; 0 where it has not begun."""
    return _REGISTRY.get_sample_value(name, labels) or 0.0


def exposition(readings: Iterable[Reading] = ()) -> bytes:
    """All numbers as Prometheus reads them (`CONTENT_TYPE`)."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Given(readings))
    return generate_latest(_REGISTRY) + generate_latest(registry)


class _Given(Collector):
    """Readings, as the library wants them."""

    def __init__(self, readings: Iterable[Reading]) -> None:
        self._readings = readings

    def collect(self) -> Iterator[Metric]:
        for reading in self._readings:
            family = (GaugeMetricFamily if reading.kind == "gauge" else CounterMetricFamily)(
                reading.name, reading.about, labels=reading.labels
            )
            for values, value in reading.numbers.items():
                family.add_metric(values, value)
            yield family
