"""``ebert serve``: a model and a linker for other programs, and for people on a web page."""

from dataclasses import replace
from typing import Any

import click

from ebert import _names
from ebert._io.progress import say
from ebert._options import cli_options
from ebert.cli.common import device_option, json_option, precision_option, print_json, vectors_option
from ebert.errors import EbertError
from ebert.serve.options import Limits, ServeOptions


@click.command("serve")
@click.argument("model")
@click.option("--linker", help="A linker made by 'ebert link train'.  [default: the model itself, without training]")
@vectors_option
@click.option(
    "--keep", is_flag=True, help="Save added entities in the store. Without it, they are lost when the service stops."
)
@device_option
@precision_option
@cli_options(ServeOptions)
@cli_options(Limits, into="limits")
@json_option
def command(
    model: str, linker: str | None, vectors: str | None, keep: bool, device: str | None, precision: Any,
    as_json: bool, options: ServeOptions, limits: Limits,
) -> None:  # fmt: skip
    """Serve a model over HTTP: a web page, and JSON for programs.

    MODEL is a folder made by 'ebert align', or 'starter'. The command prints the URL to open, with a token in it.
    Requests that change something need the token. If other machines can reach --host, all requests need it. To set
    your own token, use EBERT_TOKEN.

    \b
    Example:
      ebert serve starter
      ebert serve enwiki-ebert --linker enwiki-linker --port 8765
    """
    from ebert.finetuning.folder import check_trained
    from ebert.model.folder import find_model

    try:
        from ebert.serve.server import Server, given_token, listen, url_of
    except ImportError as error:
        raise EbertError(f"serving needs more packages ({error.name}): pip install 'ebert[serve]'") from None

    store = _names.find_local(vectors or model, "store") if keep else None
    if store is not None and _names.is_shared(store):
        raise _names.shared_store(vectors or model)
    find_model(model, vectors)
    if linker is not None:
        check_trained(linker, "linker", vectors)
    token, new = given_token()
    chosen = replace(options, token=token, limits=limits)
    opened = listen(chosen)
    url = url_of(chosen, opened, token=new)
    if as_json:
        print_json({"url": url, "port": opened.getsockname()[1]})
    else:
        click.echo(f"open {url}")
    if not chosen.loopback:
        say(
            "others can reach this service and need its token; HTTP is not encrypted: put a proxy with TLS in "
            "front of it"
        )
    if not new:
        say("the token is what EBERT_TOKEN is set to: add #token=... to the URL")
    say("loading the model ...")

    def load() -> Any:
        from ebert.serve.work import load

        return load(model, linker, vectors=vectors, keep=keep, device=device, precision=precision)

    Server(chosen, opened, load, ready=lambda: say("ready; Ctrl-C ends it")).run()
