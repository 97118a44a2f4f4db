"""Metrics of a running server in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import prometheus_client as prometheus
from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from npl_index.answer.values import Tailored
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import Call, reports_of

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# Otherwise each counter comes with a second one, the time of its creation.
prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds; a warm call takes one to three milliseconds."""


class Metrics(Collector):
    """Counts finished calls, and logs them.

    :param app: the owner of the cache of indices.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self.reports = reports_of(app, self.count)
        self._registry = prometheus.CollectorRegistry()
        counter = partial(prometheus.Counter, registry=self._registry)
        self._calls = counter("npl_calls", "Tool calls by tool and outcome", ("tool", "outcome"))
        self._seconds = prometheus.Histogram(
            "npl_call_seconds", "Time of tool calls", ("tool",), registry=self._registry, buckets=BUCKETS
        )
        in_flight = prometheus.Gauge("npl_calls_in_flight", "Tool calls in flight", registry=self._registry)
        in_flight.set_function(lambda: self.reports.in_flight)
        self._served = counter("npl_tokens_served", "Tokens of tailored answers")
        self._suggested = counter("npl_suggestions", "Sections suggested")
        self._followed = counter("npl_suggestions_followed", "Suggested sections requested by a later call")
        self._registry.register(self)

    def count(self, call: Call) -> None:
        """Count one call."""
        self._calls.labels(call.name, call.code or "OK").inc()
        self._seconds.labels(call.name).observe(call.seconds)
        self._followed.inc(call.followed)
        if isinstance(call.data, Tailored):
            self._suggested.inc(len(call.data.suggestions))
            self._served.inc(call.data.total_tokens)

    def text(self) -> bytes:
        """Return all metrics."""
        return prometheus.generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Return the hits and misses of the cache of indices since the start."""
        statistics = self._app.state.indices
        family = CounterMetricFamily(
            "npl_cache", "Indices of documents by where they came from", labels=("source",)
        )
        family.add_metric(("memory",), statistics.hits)
        family.add_metric(("built",), statistics.built)
        yield family
