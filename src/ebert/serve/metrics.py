"""What the service counts, for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from ebert.serve.batch_queue import BatchQueue, Ran

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """The counts of one service. Labels are endpoints and reasons, never anything a client made up."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        ProcessCollector(registry=registry)  # its memory, its time, its open files
        self._requests = Counter(
            "ebert_requests", "Requests by endpoint and status.", ["endpoint", "status"], registry=registry
        )
        self._latency = Histogram(
            "ebert_request_seconds", "Seconds from request to answer.", ["endpoint"], buckets=SECONDS, registry=registry
        )
        self._refused = Counter("ebert_refused", "Requests refused, by reason.", ["reason"], registry=registry)
        self._waiting = Gauge("ebert_waiting", "Jobs that wait in line.", ["lane"], registry=registry)
        self._batch = Histogram(
            "ebert_batch_requests", "Requests that ran together.", ["lane"], buckets=SIZES, registry=registry
        )
        self._tokens = Counter("ebert_tokens", "Tokens that went through the encoder.", ["lane"], registry=registry)
        self._seconds = Counter("ebert_work_seconds", "Seconds that lanes worked.", ["lane"], registry=registry)

    def answered(self, endpoint: str, status: int, seconds: float) -> None:
        """Count an answer."""
        self._requests.labels(endpoint, str(status)).inc()
        self._latency.labels(endpoint).observe(seconds)

    def refused(self, reason: str) -> None:
        """Count a refusal."""
        self._refused.labels(reason).inc()

    def ran(self, lane: str, ran: Ran) -> None:
        """Count jobs that ran together."""
        self._batch.labels(lane).observe(ran.jobs)
        self._tokens.labels(lane).inc(ran.cost)
        self._seconds.labels(lane).inc(ran.seconds)

    def watch(self, queue: "BatchQueue[object, object]") -> None:
        """Show how many jobs wait in a queue whenever somebody asks."""
        self._waiting.labels(queue.name).set_function(lambda: len(queue))

    def text(self) -> bytes:
        """Write all down."""
        return generate_latest(self._registry)
