"""``ebert report``: tables and plots of probing runs, beside the published figures; or a check of their metrics."""

from pathlib import Path

import click

from ebert._options import cli_options
from ebert.cli.common import json_option, overwrite_option, print_json, print_report
from ebert.errors import EbertError
from ebert.report.document import ReportOptions


@click.command("report")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--out", help="The folder of the report: index.html, report.md, tables as CSV, plots as SVG.")
@click.option("--check", is_flag=True, help="Write no report: compute the metrics again and compare.")
@cli_options(ReportOptions)
@overwrite_option
@json_option
def command(
    runs: tuple[str, ...], out: str | None, check: bool, options: ReportOptions, overwrite: bool, as_json: bool
) -> None:
    """Report on runs of 'ebert probe' in tables and plots, with the published figures beside ours.

    \b
    Example:
      ebert report runs/lama --out report
      ebert report --check runs/lama
    """
    folders = [Path(run) for run in runs]
    if check:
        if out:
            raise EbertError("give --check or --out, not both: a check writes nothing")
        _check(folders, as_json=as_json)
        return
    if not out:
        raise EbertError("say where the report goes (--out DIR), or only check the metrics (--check)")
    from ebert._io.progress import progress
    from ebert.report.lama import STEPS, make_report

    with progress("report", total=STEPS, unit="parts") as advance:
        summary = make_report(folders, Path(out), options, overwrite=overwrite, advance=advance)
    if as_json:
        print_json({"folder": out, **summary})
    else:
        print_report(Path(out), summary)


def _check(folders: list[Path], *, as_json: bool) -> None:
    """Recompute the metrics of every run and compare; print which are right, then raise an error for the others."""
    from ebert.report.runs import complaint, read_run, recompute

    wrong = []
    for folder in folders:
        run = read_run(folder)
        _, said = recompute(run)
        if as_json:
            print_json({"run": str(folder), "ok": not said, "questions": len(run.ids), "differences": said})
        elif not said:
            what = "" if run.has("metrics.json") else " (incomplete: it has no metrics.json yet)"
            click.echo(f"{folder}: ok, {len(run.ids):,} questions{what}")
        if said:
            wrong.append(complaint(folder, said))
    if wrong:
        raise EbertError("\n".join(wrong))
