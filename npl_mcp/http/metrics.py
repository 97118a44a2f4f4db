"""Metrics of a running server in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from npl_index.answer.values import Tailored
from npl_mcp.core.app import App
from npl_mcp.core.call_log import UNKNOWN, sinks
from npl_mcp.core.calls import Call, Reports
from npl_mcp.core.whole_sizes import whole_size
from npl_mcp.stores.access import EVERYTHING, Sight
from npl_mcp.tools.access import sees
from npl_mcp.tools.domains import tool_named

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# Otherwise each counter comes with a second one, the time it was made.
disable_created_metrics()  # type: ignore[no-untyped-call]

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds; a warm call takes one to three milliseconds."""


class Metrics:
    """Counts the calls that ``reports`` is told about, and logs them too.

    :param app: whose cache is read and whose documents are counted.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self.reports = Reports(self.count, *sinks(app))
        self._registry = CollectorRegistry()
        self._calls = Counter(
            "npl_calls", "Tool calls by tool and outcome", ("tool", "outcome"), registry=self._registry
        )
        self._seconds = Histogram(
            "npl_call_seconds", "Time of tool calls", ("tool",), registry=self._registry, buckets=BUCKETS
        )
        in_flight = Gauge("npl_calls_in_flight", "Tool calls in flight", registry=self._registry)
        in_flight.set_function(lambda: self.reports.in_flight)
        self._served = Counter("npl_tokens_served", "Tokens of tailored answers", registry=self._registry)
        self._saved = Counter(
            "npl_tokens_saved",
            "Tokens of the whole documents that tailored answers came from, less those served",
            registry=self._registry,
        )
        self._suggested = Counter("npl_suggestions", "Sections suggested", registry=self._registry)
        self._registry.register(_CacheMetrics(app))

    def count(self, call: Call) -> None:
        """Count one call."""
        tool = call.tool if call.known else UNKNOWN
        self._calls.labels(tool, call.code or "OK").inc()
        self._seconds.labels(tool).observe(call.seconds)
        if isinstance(call.data, Tailored):
            self._suggested.inc(len(call.data.suggestions))
            whole = whole_size(self._app, call, call.data)
            if whole is not None:
                self._served.inc(call.data.total_tokens)
                self._saved.inc(max(0, whole - call.data.total_tokens))

    def text(self, sight: Sight = EVERYTHING) -> bytes:
        """Return all metrics, including those of calls answered just now.

        :param sight: of who asks; what counts calls of tools of other domains is left out.
        """
        self.reports.flush()
        return generate_latest(self._registry if sight.domains is None else _Seen(self._registry, sight))


class _Seen(CollectorRegistry):
    """The metrics of the tools that somebody sees."""

    def __init__(self, registry: CollectorRegistry, sight: Sight) -> None:
        super().__init__()
        self._every, self._sight = registry, sight

    def collect(self) -> Iterator[Metric]:
        """Return the metrics."""
        for metric in self._every.collect():
            metric.samples = [one for one in metric.samples if self._is_seen(one.labels.get("tool"))]
            if metric.samples:
                yield metric

    def _is_seen(self, tool: str | None) -> bool:
        if tool is None:
            return False  # it sums up calls of all tools
        if tool == UNKNOWN:
            return True
        try:
            return sees(tool_named(tool), self._sight)
        except KeyError:  # a tool of the server itself
            return True


class _CacheMetrics(Collector):
    """Reads the statistics of the cache of indices."""

    def __init__(self, app: App) -> None:
        self._app = app

    def collect(self) -> Iterator[Metric]:
        """Return the hits and misses since the start."""
        figures = self._app.state.indices.statistics
        family = CounterMetricFamily(
            "npl_cache", "Indices of documents by where they came from", labels=("source",)
        )
        family.add_metric(("memory",), figures.hits)
        family.add_metric(("built",), figures.built)
        yield family
