"""Filling masks over HTTP at 1, 8 and 64 clients, with and without batching across requests, on loopback.

    python benchmarks/serve.py [--model starter] [--modes concat] [--rounds N] [--requests 10000]

One process serves the same model twice, on two ports: once batching the requests of its clients, once not. Rounds
alternate between the two, and the fastest round of each counts. A client sends its next request when it has the answer
to the last one, and every answer is compared with the model's answer to that text alone. At the end, `--requests` more
requests are sent, and the memory of the service is printed meanwhile.
"""

import argparse
import asyncio
import itertools
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = [
    "Jean Marais", "Romy Schneider", "Franz Kafka", "Niels Bohr", "Marie Curie", "Karen Blixen", "Luis Buñuel",
    "Akira Kurosawa", "Ingmar Bergman", "Henrik Ibsen", "Simone Signoret", "Alan Turing", "Johnny Cash",
]  # fmt: skip
TEMPLATES = [
    "The native language of [[{}]] is [MASK] .",
    "[[{}]] was born in [MASK] .",
    "[[{}]] is a [MASK] by profession .",
    "It is not widely known , but for the better part of a long working life [[{}]] used to live in [MASK] .",
    "[[{}]] works in the field of [MASK] .",
]
SIZES = {1: 65, 8: 130, 64: 325}  # clients: requests of a round, all texts as often
PARTS = 5  # in which the memory is looked at
TOKEN = "only-for-the-benchmark"
CLOSE = 0.01  # probabilities of the same text in another batch differ by rounding only


@dataclass
class Result:
    """The result of a round."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    lost: int = 0
    mixed: int = 0

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.seconds

    def percentile(self, share: float) -> float:
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Bench:
    """Clients of a service, and the answer to each text if it is asked alone."""

    def __init__(self, modes: list[str] | None) -> None:
        pairs = itertools.product(TEMPLATES, NAMES)
        self.texts = [template.format(name) for template, name in pairs]
        self._requests = [_request({"text": text, **({"modes": modes} if modes else {})}) for text in self.texts]
        self._expected: dict[int, Any] = {}

    async def learn(self, port: int) -> None:
        """Ask everything once, one by one."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number, request in enumerate(self._requests):
            status, answer = await _ask(reader, writer, request)
            assert status == 200, answer
            self._expected[number] = answer
        writer.close()

    async def round(self, port: int, clients: int, count: int) -> Result:
        """Let clients send this many requests in total."""
        result, numbers = Result(), iter(range(count))
        start = time.perf_counter()
        await asyncio.gather(*(self._client(port, numbers, result, offset) for offset in range(clients)))
        result.seconds = time.perf_counter() - start
        return result

    async def _client(self, port: int, numbers: Iterator[int], result: Result, offset: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in numbers:
            text = (7 * number + offset) % len(self.texts)
            start = time.perf_counter()
            try:
                status, answer = await _ask(reader, writer, self._requests[text])
            except (OSError, asyncio.IncompleteReadError):
                status = 0
            result.latencies.append(time.perf_counter() - start)
            if status != 200:
                result.lost += 1
            elif not _same(answer, self._expected[text]):
                result.mixed += 1
        writer.close()


def _request(value: dict[str, Any]) -> bytes:
    body = json.dumps(value).encode()
    head = (
        f"POST /api/fill HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    )
    return head.encode() + b"\r\n\r\n" + body


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> tuple[int, Any]:
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    body = await reader.readexactly(int(length[1])) if length else b"{}"
    return int(head.split(b" ", 2)[1]), json.loads(body)


def _same(answer: Any, expected: Any) -> bool:
    if answer["text"] != expected["text"] or answer["mentions"] != expected["mentions"]:
        return False
    for got, wanted in zip(answer["results"], expected["results"], strict=True):
        likely = {one["token"]: one["probability"] for one in wanted["masks"][0]}
        first = got["masks"][0][0]
        if got["pieces"] != wanted["pieces"] or abs(likely.get(first["token"], -1) - first["probability"]) > CLOSE:
            return False
    return True


def memory(process: int) -> float:
    """Return the memory of a process in MB, if the system can tell."""
    status = Path(f"/proc/{process}/status")
    found = re.search(r"VmRSS:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return int(found[1]) / 1024 if found else float("nan")


def serve(model: str) -> None:
    """Serve a model twice, with and without batching, until standard input ends."""
    import threading

    from ebert.serve.options import ServeOptions
    from ebert.serve.server import Server, listen
    from ebert.serve.work import load

    loaded = load(model)
    ports, running = [], []
    for batching in (False, True):
        options = ServeOptions(port=0, token=TOKEN, batching=batching)
        opened = listen(options)
        ports.append(opened.getsockname()[1])
        running.append(Server(options, opened, lambda: loaded))
    threads = [threading.Thread(target=one.run) for one in running]
    for thread in threads:
        thread.start()
    while any(one.service.why_not_ready for one in running):
        time.sleep(0.05)
    print(json.dumps(ports), flush=True)
    sys.stdin.read()
    for one, thread in zip(running, threads, strict=True):
        one.stop()
        thread.join()


async def measure(arguments: argparse.Namespace, ports: list[int], process: int) -> None:
    bench = Bench([arguments.modes] if arguments.modes else None)
    await bench.learn(ports[0])
    names = dict(zip(("without batching", "with batching"), ports, strict=True))
    best: dict[tuple[int, str], Result] = {}
    lost = mixed = 0
    for clients, count in SIZES.items():
        for number, turn in itertools.product(range(arguments.rounds), range(len(names))):
            name = list(names)[(number + turn) % len(names)]  # each is the first as often
            result = await bench.round(names[name], clients, count)
            lost, mixed = lost + result.lost, mixed + result.mixed
            if (clients, name) not in best or result.rate > best[clients, name].rate:
                best[clients, name] = result
        for name in names:
            result = best[clients, name]
            times = "  ".join(f"p{share:.0%} {1e3 * result.percentile(share):6.0f} ms" for share in (0.5, 0.95, 0.99))
            print(
                f"  {clients:>2} clients {name:<16} {result.rate:7.1f} requests/s  {times.replace('%', '')}", flush=True
            )
    print(f"memory of the service, with 64 clients: {memory(process):,.0f} MB", flush=True)
    for part in range(1, PARTS + 1):
        result = await bench.round(ports[1], 64, arguments.requests // PARTS)
        lost, mixed = lost + result.lost, mixed + result.mixed
        print(f"  {memory(process):,.0f} MB after {part * (arguments.requests // PARTS):,} more requests", flush=True)
    print(f"answers lost: {lost}, mixed up: {mixed}")
    for clients in SIZES:
        ratio = best[clients, "with batching"].rate / best[clients, "without batching"].rate
        print(f"ratio batching at {clients} clients: {ratio:.2f}")
    if lost or mixed:
        sys.exit("answers were lost or mixed up")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="starter")
    parser.add_argument("--modes", choices=("bert", "concat", "replace"), help="one mode; all three otherwise")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--requests", type=int, default=640)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.model)
        return
    command = [sys.executable, __file__, "--serve", "--model", arguments.model]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        line = child.stdout.readline()
        if not line:
            sys.exit("the service did not start")
        modes = f"mode {arguments.modes}" if arguments.modes else "all modes"
        print(f"fill over HTTP, {modes}, model {arguments.model}, {os.cpu_count()} cores, {platform.machine()}")
        try:
            asyncio.run(measure(arguments, json.loads(line), child.pid))
        finally:
            child.stdin.close()


if __name__ == "__main__":
    main()
