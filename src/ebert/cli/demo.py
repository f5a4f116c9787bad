"""``ebert demo``: the real BERT answers questions with and without the entities that come with ebert."""

from dataclasses import asdict

import click

from ebert._io.progress import waiting
from ebert.cli.common import json_option, print_json, print_table
from ebert.model.folder import find

SHOWN = 12  # answers that the entities change
NEXT = """\
Go on:
  ebert fill --model starter "The native language of [[Natalia Lafourcade]] is [MASK]."
  ebert link run starter --text "Arsenal beat Real Madrid at the Emirates."
  ebert serve starter       # the same and more on a web page (pip install 'ebert[serve]')
  ebert --help              # all commands, each with an example"""


@click.command("demo")
@json_option
def command(as_json: bool) -> None:
    """See what entities change: the real BERT answers questions with and without them.

    The first time, bert-base-cased is fetched (400 MB). Nothing else is changed: the entity that the demo teaches goes
    into a copy of the starter's store.

    \b
    Example:
      ebert demo
    """
    find("starter", None)
    with waiting("loading bert-base-cased and the starter"):
        from ebert.demo.run import DESCRIPTION, ask, teach
        from ebert.model.ebert import EBert

        model = EBert.from_pretrained("starter")
        asked, taught = list(ask(model)), list(teach(model))
    if as_json:
        print_json({"asked": [asdict(one) for one in asked], "taught": [asdict(one) for one in taught]})
        return
    changed = [one for one in asked if one.before != one.after]
    click.secho(f"1. {len(asked)} questions to the same BERT, without and with the vector of who is meant", bold=True)
    print_table(
        [
            ("", "fact", "BERT", "with ebert"),
            *((one.question, one.fact, one.before, one.after) for one in changed[:SHOWN]),
        ]
    )
    click.echo(f"... and {len(changed) - SHOWN:,} more answers that change\n" if len(changed) > SHOWN else "")
    click.secho("2. Somebody whom BERT cannot know, taught by a paragraph", bold=True)
    click.echo(DESCRIPTION)
    print_table([("", "before", "after"), *((one.question, one.before, one.after) for one in taught)])
    before, after = (sum(one.fact == getattr(one, when) for one in asked) for when in ("before", "after"))
    click.echo(
        f"\nBERT alone got {before} of {len(asked)} answers right, and {after} when ebert told it who is meant. "
        f"Not one of its weights was changed.\n\n{NEXT}"
    )
