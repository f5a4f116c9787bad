"""``ebert demo``: the real BERT answers questions with and without entities, and ebert links news."""

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
    """Show what entities change: the real BERT answers questions with and without them.

    At the end it links the names in the 40 texts of the news set (examples/linking) and compares them with the labels.
    The first time, it fetches bert-base-cased (400 MB). It changes nothing else: the entity that the demo teaches goes
    into a copy of the starter's store.

    \b
    Example:
      ebert demo
    """
    find("starter", None)
    with waiting("loading bert-base-cased and the starter"):
        from ebert.demo.run import DESCRIPTION, ask, link, teach
        from ebert.model.ebert import EBert

        model = EBert.from_pretrained("starter")
        asked, taught, linked = list(ask(model)), list(teach(model)), link(model)
    if as_json:
        print_json(
            {
                "asked": [asdict(one) for one in asked],
                "taught": [asdict(one) for one in taught],
                "linked": asdict(linked),
            }
        )
        return
    changed = [one for one in asked if one.before != one.after]
    click.secho(f"1. {len(asked)} questions to the same BERT, without and with the entity's vector", bold=True)
    print_table(
        [
            ("", "fact", "BERT", "with ebert"),
            *((one.question, one.fact, one.before, one.after) for one in changed[:SHOWN]),
        ]
    )
    click.echo(f"... and {len(changed) - SHOWN:,} more answers that change\n" if len(changed) > SHOWN else "")
    click.secho("2. Somebody BERT cannot know, added from one paragraph", bold=True)
    click.echo(DESCRIPTION)
    print_table([("", "before", "after"), *((one.question, one.before, one.after) for one in taught)])
    before, after = (sum(one.fact == getattr(one, when) for one in asked) for when in ("before", "after"))
    click.echo(
        f"\nBERT alone got {before} of {len(asked)} answers right, and {after} when ebert told it who is meant. "
        "Not one of its weights was changed.\n"
    )
    click.secho("3. Names in the news, linked to Wikipedia", bold=True)
    click.echo("\n".join(linked.sentences))
    click.echo(
        f"\nOf the {linked.documents} texts of the news set, whose {linked.gold} names are labelled, the linker has a "
        f"micro F1 of {linked.f1:.1f}.\n\n{NEXT}"
    )
