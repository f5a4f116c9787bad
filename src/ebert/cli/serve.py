"""``ebert serve``: a model and a linker for other programs, and for people on a web page."""

from typing import Any

import click

from ebert.cli.common import json_option, print_json
from ebert.errors import EbertError


@click.command("serve")
@click.argument("model")
@click.option("--linker", help="A linker made by 'ebert link train'.  [default: the model itself, without training]")
@click.option("--vectors", help="Where the model's store is now, if not where it was.")
@click.option("--keep", is_flag=True, help="Write added entities into the store; otherwise they go with the service.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0: any free one.")
@click.option("--device", help="Where the encoder runs: cpu, cuda, mps, ...")
@click.option("--batching/--no-batching", default=True, show_default=True,
              help="Let requests of several clients go through the encoder together.")  # fmt: skip
@click.option("--window", type=click.FloatRange(0, 1), default=0.004, show_default=True,
              help="Seconds that a request waits for others to go with.")  # fmt: skip
@click.option("--budget", type=click.IntRange(1), help="Tokens of a batch.  [default: what suits the device]")
@click.option("--waiting", type=click.IntRange(1), default=256, show_default=True,
              help="Requests that wait; one more is refused.")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(0.1), default=30.0, show_default=True,
              help="Until an answer must be there.")  # fmt: skip
@click.option("--characters", type=click.IntRange(1), default=20_000, show_default=True, help="Of a text, at most.")
@click.option("--cost", type=click.IntRange(1), default=60_000, show_default=True,
              help="Characters of a text to link, times rounds of refinement, at most.")  # fmt: skip
@json_option
def command(
    model: str, linker: str | None, vectors: str | None, keep: bool, device: str | None, as_json: bool, **rest: Any
) -> None:
    """Serve a model over HTTP: a web page, and JSON for programs.

    MODEL is a folder made by 'ebert align', or 'starter'. The URL to open is printed. The token in it is needed for
    what changes something, and for everything if --host is not this machine only; EBERT_TOKEN sets another one.

    \b
    Example:
      ebert serve starter
      ebert serve enwiki-ebert --linker enwiki-linker --port 8765
    """
    try:
        from ebert.serve.running import Running, given_token, listen, url_of
    except ImportError as error:
        raise EbertError(f"serving needs more packages ({error.name}): pip install 'ebert[serve]'") from None

    token, new = given_token()
    options = _options(token, rest)
    opened = listen(options)
    url = url_of(options, opened, token=new)
    if as_json:
        print_json({"url": url, "port": opened.getsockname()[1]})
    else:
        click.echo(f"open {url}")
    _say(options.loopback, new)

    def load() -> Any:
        from ebert.serve.loading import load

        return load(model, linker, vectors=vectors, keep=keep, device=device)

    Running(options, opened, load, ready=lambda: click.echo("ready; Ctrl-C ends it", err=True)).run()


def _options(token: str, given: dict[str, Any]) -> Any:
    from ebert.serve.options import Limits, ServeOptions

    limits = {name: given.pop(name) for name in ("waiting", "seconds", "characters", "cost")}
    return ServeOptions(token=token, limits=Limits(**limits), **given)


def _say(loopback: bool, new: bool) -> None:
    if not loopback:
        click.echo("others can reach this service and need its token; HTTP is not encrypted: put a proxy with TLS "
                   "before it", err=True)  # fmt: skip
    if not new:
        click.echo("the token is what EBERT_TOKEN is set to: add #token=... to the URL", err=True)
    click.echo("loading the model ...", err=True)
