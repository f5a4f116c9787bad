"""``ebert serve``: a model and a linker for other programs and for a web page."""

import click

from ebert.cli.common import json_option, print_json
from ebert.errors import EbertError


@click.command("serve")
@click.argument("model")
@click.option("--linker", help="A linker made by 'ebert link train'.  [default: the model, without training]")
@click.option("--vectors", help="Where the model's store is now, if not where it was.")
@click.option("--keep", is_flag=True, help="Write added entities into the store; otherwise they go with the service.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0: any free one.")
@click.option("--device", help="Where the encoder runs: cpu, cuda, mps, ...")
@json_option
def command(
    model: str, linker: str | None, vectors: str | None, keep: bool, host: str, port: int, device: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Serve a model over HTTP: a web page, and JSON for programs.

    MODEL is a folder made by 'ebert align', or 'starter'. Whoever opens the printed URL can use all of the page.

    \b
    Example:
      ebert serve starter
      ebert serve enwiki-ebert --linker enwiki-linker --port 8765
    """
    try:
        from ebert.serve import running
    except ImportError as error:
        raise EbertError(f"serving needs more packages ({error.name}): pip install 'ebert[serve]'") from None
    from ebert.serve.loading import load
    from ebert.serve.options import ServeOptions

    token, new = running.given_token()
    options = ServeOptions(host=host, port=port, token=token)
    opened = running.listen(options)
    url = running.url_of(options, opened, token=new)
    if as_json:
        print_json({"url": url, "port": opened.getsockname()[1]})
    else:
        click.echo(f"open {url}")
        click.echo("loading the model ...", err=True)
    running.run(
        options, opened, lambda: load(model, linker, vectors=vectors, keep=keep, device=device),
        ready=lambda loaded: click.echo("ready; Ctrl-C ends it", err=True),
    )  # fmt: skip
