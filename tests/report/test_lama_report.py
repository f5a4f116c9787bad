"""Whole reports: what their tables say, that they can be trusted, that they look after hostile text."""

import csv
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from fake_runs import LAMA, MODES, PEOPLE, make_run, read_json, write_json, write_lines

from ebert.errors import EbertError
from ebert.probing.filters import FILTERS
from ebert.report import published
from ebert.report.document import ReportOptions as Options
from ebert.report.lama import STEPS, make_report

FAST = Options(resamples=200)


def table(folder, key):
    with (folder / "tables" / f"{key}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def lama(tmp_path_factory):
    """A report on one run of LAMA."""
    folder = tmp_path_factory.mktemp("lama")
    run = make_run(folder / "lama", size=60)
    steps = []
    make_report([run], folder / "report", FAST, advance=steps.append)
    assert sum(steps) == STEPS
    return folder / "report"


def test_means_stand_beside_the_published_ones(lama):
    rows = {row["Model"]: row for row in table(lama, "means")}
    scores = read_json(lama.parent / "lama" / "metrics.json")["modes"]
    for mode, model in (("bert", "BERT-base"), ("concat", "E-BERT-concat-base"), ("replace", "E-BERT-replace-base")):
        row = rows[f"lama · {mode}"]
        assert float(row["all"]) == pytest.approx(scores[mode]["all"]["macro"]["hits@1"], abs=1e-3)
        # The run has some of LAMA's relations, so the published mean is over the same ones.
        theirs = sum(published.relation(model, relation, "all") for relation in LAMA) / len(LAMA)
        assert float(row["all, published"]) == pytest.approx(theirs, abs=1e-3)
        assert float(row["all, difference"]) == pytest.approx(float(row["all"]) - theirs, abs=2e-3)
    assert {"ERNIE (published)", "KnowBert (published)", "BERT large (published)"} <= set(rows)
    assert rows["K-Adapter (published)"]["all, published"] == ""
    assert "lama has 11 of LAMA&#x27;s 44 relations" in (lama / "index.html").read_text(encoding="utf-8")
    assert {row["Model"]: row["uhn"] for row in table(lama, "means-knowbert")}["E-BERT concat base"] == "30.6"


def test_the_paper_s_means_stand_beside_all_relations(tmp_path):
    relations = dict.fromkeys(published.figures()["relations"], (0.3, 0.3, 0.1))
    run = make_run(tmp_path / "large", size=4, relations=relations, encoder="somewhere/bert-large-cased")
    summary = make_report([run], tmp_path / "report", FAST)
    assert summary["warnings"] == []
    rows = {row["Model"]: row for row in table(tmp_path / "report", "means")}
    assert [rows[f"large · {mode}"]["uhn, published"] for mode in MODES] == ["23", "29.5", "27.8"]
    assert rows["BERT base (published)"]["all, published"] == "29.2"
    assert rows["K-Adapter (published)"]["uhn, published"] == "21.7"
    assert rows["K-Adapter (published)"]["string-match, published"] == ""


def test_the_published_means_are_those_of_the_published_relations():
    """Two tables of the paper agree: a slip in copying either would show here."""
    every = published.figures()["relations"]
    assert len(every) == 44
    for name in FILTERS:
        for model, mean in published.means(name, list(every)).items():
            if model != "K-Adapter":
                scores = [published.relation(model, relation, name) for relation in every]
                assert sum(scores) / 44 == pytest.approx(mean, abs=0.06)


def test_every_relation_is_there(lama):
    for name in ("all", "string-match", "uhn"):
        rows = table(lama, f"relations-{name}")
        assert len(rows) == len(LAMA)
        native = next(row for row in rows if row["relation"] == "P103 native language")
        theirs = {"all": ("72.2", "977"), "string-match": ("72.1", "975"), "uhn": ("45.8", "415")}[name]
        assert (native["BERT base (published)"], native["questions (published)"]) == theirs
    assert any(row["relation"] == "Google-RE place of birth" for row in rows)


def test_changes_have_intervals_and_the_share_of_substring_answers(lama):
    rows = {row["relation"]: row for row in table(lama, "changes")}
    cars = rows["P176 manufacturer"]
    assert float(cars["substring answers (%)"]) > 60
    assert float(cars["lama · replace: published"]) == pytest.approx(41.6 - 85.6, abs=1e-3)
    low, value, high = (float(cars[f"lama · replace{part}"]) for part in (" (low)", "", " (high)"))
    assert low <= value <= high < 0
    assert int(cars["lama · replace: lost"]) - int(cars["lama · replace: gained"]) == round(-value * 60 / 100)


def labels_of(svg):
    return "".join(ElementTree.fromstring(svg).itertext())


def test_the_figure_has_the_relations_that_change(lama, tmp_path):
    changes = {row["relation"]: row for row in table(lama, "changes")}
    text = labels_of((lama / "plots" / "changes.svg").read_text())
    for relation, row in changes.items():
        largest = max(abs(float(row[f"lama · {mode}"])) for mode in ("concat", "replace"))
        assert (relation in text) == (largest >= 7.5), relation
    assert any(relation not in text for relation in changes)
    make_report([lama.parent / "lama"], tmp_path / "all", Options(all_relations=True, resamples=100))
    text = labels_of((tmp_path / "all" / "plots" / "changes.svg").read_text())
    assert all(relation in text for relation in changes)


def test_differences(lama):
    rows = table(lama, "differences")
    assert len(rows) == 3 * 3
    first = rows[0]
    assert (first["Model"], first["against"], first["filter"]) == ("lama · concat", "lama · bert", "all")
    assert int(first["questions"]) == 60 * len(LAMA)
    assert 0 < int(first["covered questions"]) < 60 * len(LAMA)
    assert float(first["change (low)"]) < float(first["change"]) < float(first["change (high)"])


def test_frequency(lama):
    rows = [row for row in table(lama, "frequency") if row["Model"] == "lama · concat"]
    names = ["not covered", "0–9", "10–99", "100–999", "1,000–9,999", "10,000 or more"]
    assert [row["links"] for row in rows] == names
    assert sum(int(row["questions"]) for row in rows) == 60 * len(LAMA)
    assert float(rows[0]["change"]) == 0
    for row in rows:
        assert float(row["Hits@1"]) - float(row["plain BERT"]) == pytest.approx(float(row["change"]), abs=2e-3)


def test_native_language(lama):
    rows = table(lama, "native-language")
    assert [row["subject"] for row in rows] == list(PEOPLE)
    assert [row["BERT (published)"] for row in rows] == ["French", "Italian", "Albanian", "Spanish", "English"]
    for row in rows:
        # A right answer is ticked and comes first.
        for mode in ("bert", "concat", "replace"):
            cell = row[f"lama · {mode}"]
            assert cell.startswith("✓ ") == cell.removeprefix("✓ ").startswith(row["answer"])


def test_what_the_filters_deleted(lama):
    rows = {row["relation"]: row for row in table(lama, "deleted")}
    assert float(rows["P1412 languages spoken"]["both, %, published"]) == pytest.approx(100 * 608 / 969, abs=1e-3)
    assert int(rows["P103 native language"]["name"]) > 0
    assert int(rows["P176 manufacturer"]["string-match"]) > 30
    named = {row["relation"]: row for row in table(lama, "names")}
    native = named["P103 native language"]
    assert native["deleted"] == rows["P103 native language"]["name"]
    ways = ("by the first part", "by the last part", "by another part", "by several parts")
    assert sum(int(native[way]) for way in ways) == int(native["deleted"])
    assert sum(int(native[f"at rank {rank}"]) for rank in (1, 2, 3)) == int(native["deleted"])
    examples = table(lama, "deleted-examples")
    name = next(row for row in examples if row["filter"] == "name")
    assert re.fullmatch(r"\((\d|-),(\d|-)\)", name["rank by part"])
    assert re.search(r"\[MASK: \w+\]", name["for example"])


def test_examples_that_changed(lama):
    rows = table(lama, "examples-1")
    assert {row["what"] for row in rows} == {"gained", "lost"}
    for row in rows:
        before, now = int(row["rank before"]), int(row["rank now"])
        assert (now == 1 < before) if row["what"] == "gained" else (before == 1 < now)
    gained = [row["relation"] for row in rows if row["what"] == "gained"]
    assert len(gained) == 10
    assert len(set(gained)) >= 7  # not all of one kind


def test_the_page_stands_alone(lama):
    page = (lama / "index.html").read_text(encoding="utf-8")
    loaded = re.findall(r'(?:\bsrc|<link[^>]*href|@import|url\()\s*=?\s*["\']?([^"\')>]+)', page)
    assert all(address.startswith("#") for address in loaded)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    for reference in re.findall(r'(?:href="|url\()#([^")]+)', page):
        assert reference in ids
    assert "bert-base-cased" in page
    assert "enwiki-vectors" in page
    assert "ebert probe lama data --out lama" in page
    assert page.count("<svg") == 5
    document = (lama / "report.md").read_text(encoding="utf-8")
    for plot in re.findall(r"\]\((plots/[^)]+)\)", document):
        assert (lama / plot).is_file()
    assert document.count("![") == 5


def test_the_same_runs_give_the_same_bytes(lama, tmp_path):
    make_report([lama.parent / "lama"], tmp_path / "again", FAST)
    names = sorted(path.relative_to(lama) for path in lama.rglob("*") if path.is_file())
    assert names == sorted(p.relative_to(tmp_path / "again") for p in (tmp_path / "again").rglob("*") if p.is_file())
    for name in names:
        assert (lama / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name


class Balanced(HTMLParser):
    """Checks that elements are closed in order."""

    def __init__(self):
        super().__init__()
        self.open = []
        self.seen = set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_hostile_text_stays_text(tmp_path):
    run = make_run(tmp_path / "a <b> & $x^$ | _run_", size=8, command="<script>alert(1)</script> `x`")
    hostile = "<img src=x onerror=alert(1)> | **[x](y)** $\\frac$ \"'"
    lines = [
        {"id": f"{relation}/{number:05d}", "relation": relation, "text": f"{hostile} [MASK]", "subject": hostile,
         "answers": ["<i>"], "entity": None}
        for relation in LAMA for number in range(8)
    ]  # fmt: skip
    write_lines(run / "questions.jsonl", lines)
    make_report([run], tmp_path / "report", FAST)
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert not {"img", "b", "i"} & parser.seen
    assert page.count("<script>") == 1
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    document = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert "\\<img src=x" in document
    rows = [line for line in document.splitlines() if line.startswith("| gained")]
    assert rows
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1


def test_several_runs(tmp_path):
    one = make_run(tmp_path / "one", size=30, seed=1)
    two = make_run(tmp_path / "two", size=20, seed=2, encoder="roberta-base")
    summary = make_report([one, two], tmp_path / "report", FAST)
    assert summary["runs"] == ["one", "two"]
    rows = {(row["Model"], row["against"], row["filter"]): row for row in table(tmp_path / "report", "differences")}
    assert int(rows["two · concat", "one · concat", "all"]["questions"]) == 20 * len(LAMA)
    assert int(rows["one · concat", "one · bert", "all"]["questions"]) == 30 * len(LAMA)
    means = {row["Model"]: row for row in table(tmp_path / "report", "means")}
    assert float(means["one · concat"]["all, published"]) > 0
    assert means["two · concat"]["all, published"] == ""  # the paper has no figures for this encoder


def test_plain_bert_of_another_run(tmp_path):
    plain = make_run(tmp_path / "plain", size=20, modes=["bert"])
    other = make_run(tmp_path / "other", size=20, modes=["concat"], seed=4)
    make_report([plain, other], tmp_path / "report", FAST)
    assert [row["against"] for row in table(tmp_path / "report", "differences")] == ["plain · bert"] * 3
    make_report([other], tmp_path / "alone", FAST)
    assert "nothing to compare with" in (tmp_path / "alone" / "index.html").read_text(encoding="utf-8")


def test_limited_and_incomplete_runs_are_marked_everywhere(tmp_path):
    run = make_run(tmp_path / "quick", size=12, limit=12, complete=False)
    make_report([run], tmp_path / "report", FAST)
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert page.count('class="warning"') == 3  # also for the relations that are missing
    for path in (tmp_path / "report" / "tables").iterdir():
        if path.stem != "means-knowbert":  # published figures only
            assert "quick (incomplete, limit 12)" in path.read_text(encoding="utf-8"), path
    for path in (tmp_path / "report" / "plots").iterdir():
        assert "quick (incomplete, limit 12)" in path.read_text(encoding="utf-8"), path


def test_a_shipped_result_has_all_but_the_examples(tmp_path):
    run = make_run(tmp_path / "shipped", size=12, questions=False, names=False, compressed=True)
    make_report([run], tmp_path / "report", FAST)
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert "no questions.jsonl in the run folder" in page
    assert "has no names.jsonl" in page
    keys = {path.stem for path in (tmp_path / "report" / "tables").iterdir()}
    assert {"means", "changes", "curves", "frequency", "deleted", "relations-uhn"} <= keys
    assert not {"examples-1", "native-language", "deleted-examples"} & keys


def test_a_shipped_result_beside_a_run_with_questions_has_examples(tmp_path):
    shipped = make_run(tmp_path / "shipped", size=12, questions=False, seed=3)
    own = make_run(tmp_path / "own", size=12, seed=4)
    make_report([shipped, own], tmp_path / "report", FAST)
    assert any("shipped · concat" in row for row in table(tmp_path / "report", "examples-1"))


def test_own_questions_have_no_published_figures(tmp_path):
    run = make_run(tmp_path / "mine", size=20, relations={"P103": LAMA["P103"], "river": LAMA["P17"]},
                   benchmark="questions", filters=["all"])  # fmt: skip
    make_report([run], tmp_path / "report", FAST)
    for path in tmp_path.joinpath("report").rglob("*.*"):
        text = path.read_text(encoding="utf-8")
        assert "ERNIE" not in text
        assert "ublished figure" not in text
    keys = {path.stem for path in (tmp_path / "report" / "tables").iterdir()}
    assert keys == {
        "runs", "means", "means-covered", "differences", "changes", "curves", "frequency", "examples-1", "examples-2",
        "relations-all",
    }  # fmt: skip


def test_metrics_that_do_not_agree_stop_the_report(tmp_path):
    run = make_run(tmp_path / "lama", size=5)
    written = read_json(run / "metrics.json")
    written["modes"]["bert"]["all"]["macro"]["hits@1"] += 5
    write_json(run / "metrics.json", written)
    with pytest.raises(EbertError, match=r"bert, all, macro, hits@1: metrics.json has "):
        make_report([run], tmp_path / "report", FAST)
    assert not (tmp_path / "report").exists()


def test_runs_with_nothing_in_common(tmp_path):
    one = make_run(tmp_path / "one", size=5, relations={"P17": LAMA["P17"]})
    two = make_run(tmp_path / "two", size=5, relations={"P19": LAMA["P19"]})
    with pytest.raises(EbertError, match=r"one and .*two have no question in common"):
        make_report([one, two], tmp_path / "report", FAST)


def test_other_folders_are_not_overwritten(tmp_path):
    run = make_run(tmp_path / "lama", size=5)
    with pytest.raises(EbertError, match=r"it has no report.json"):
        make_report([run], run, FAST, overwrite=True)
    make_report([run], tmp_path / "report", FAST)
    with pytest.raises(EbertError, match="exists"):
        make_report([run], tmp_path / "report", FAST)
    make_report([run], tmp_path / "report", FAST, overwrite=True)
