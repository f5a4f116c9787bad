"""What somebody who is new to the page meets first, on a desk and on a phone, with a service of a tiny model.

Pictures of it all are in build/screenshots.
"""

import contextlib
import io
import json
import shlex
from urllib.parse import parse_qs

import pytest
from click.testing import CliRunner
from page_browser import SIZES, best, fits, opened, ready, settled, shot, visited
from playwright.sync_api import expect
from serve_world import TEXT, write_model

from ebert.cli import cli

MARKED = "[[John Adams|Adams]] will miss the [MASK]."
# The part of an element that the window shows, and nothing covers: 0 to 1.
SEEN = """(node) => {
    const { left, right, top, bottom } = node.getClientRects()[0];
    const points = [0.1, 0.3, 0.5, 0.7, 0.9].map((part) => [left + part * (right - left), (top + bottom) / 2]);
    const hits = points.filter(([x, y]) => node.contains(document.elementFromPoint(x, y)));
    return hits.length / points.length;
}"""


# What has the focus, and the outline around it.
FOCUS = """() => {
    const style = getComputedStyle(document.activeElement);
    return [document.activeElement.outerHTML.slice(0, 80), style.outlineStyle, parseFloat(style.outlineWidth)];
}"""


@pytest.fixture(params=SIZES, scope="module")
def size(request):
    return request.param


@pytest.fixture(scope="module")
def window(browser, tiny, size):
    with opened(browser, tiny.page, size=size) as found:
        yield found


@pytest.fixture
def page(window, tiny):
    with visited(window, tiny.page) as found:
        settled(found, "fill")
        yield found
        fits(found)


@pytest.fixture
def tiny_client(tiny):
    with tiny.client() as found:
        yield found


def to(page, view):
    page.get_by_role("tab", name=view.capitalize()).click()
    settled(page, view)


class TestFill:
    def test_the_answer_follows_the_sentence(self, page, size):
        box = {name: page.locator(one).bounding_box() for name, one in
               (("form", "#fill-form"), ("answer", "#fill-results"), ("examples", "#fill-examples"))}  # fmt: skip
        gap = box["answer"]["y"] - box["form"]["y"] - box["form"]["height"]
        assert gap < (100 if size == "desk" else 200)  # on a phone, a row of examples is between them

    def test_it_scrolls_to_the_answer(self, page):
        assert page.evaluate("scrollY") == 0  # not for the example that it begins with
        page.locator("#fill-text").fill(MARKED)
        page.get_by_role("button", name="Ask BERT").click()
        expect(page.locator("#fill-marks .chip")).to_have_count(1)
        settled(page, "fill")
        verdict = page.locator("#fill-results h2").bounding_box()
        first = page.locator("#fill-results .column").first.bounding_box()
        assert verdict["y"] >= 0
        assert first["y"] + first["height"] <= page.viewport_size["height"]


class TestLink:
    def test_it_begins_with_an_example(self, page):
        to(page, "link")
        expect(page.locator("#link-text")).to_have_value(
            "The Beatles played in Hamburg before they became famous in Liverpool. John Lennon and Paul McCartney "
            "wrote most of their songs."
        )
        expect(page.locator(".linked")).to_contain_text("The Beatles played in")
        assert page.evaluate("scrollY") == 0

    def test_titles_are_labels_and_candidates_stand_beside(self, page, size, tiny_client):
        to(page, "link")
        page.locator("#link-text").fill(TEXT)
        page.get_by_role("button", name="Find entities").click()
        entities = page.locator(".linked .entity")
        expect(entities.first).to_contain_text("Adams")
        settled(page, "link")
        answer = tiny_client.post("/api/link", json={"text": TEXT, "rounds": 3}).json()
        assert answer["mentions"]
        titles = page.locator(".linked .entity .title")
        assert titles.all_inner_texts() == [one["entity"] for one in answer["mentions"]]
        last = entities.last
        last.click()
        expect(last).to_have_attribute("aria-pressed", "true")
        heading = page.locator(".detail h2")
        expect(heading).to_have_text(f"“{answer['mentions'][-1]['text']}”")
        for node in (last, heading):
            assert node.evaluate(SEEN) == 1
        shot(page, f"{size}-points-candidates")
        page.keyboard.press("Escape")
        expect(heading).to_be_hidden()
        expect(last).to_be_focused()


class TestTeach:
    def test_it_begins_empty(self, page, size):
        to(page, "teach")
        for name in ("title", "description", "aliases", "question"):
            field = page.locator(f"#teach-{name}")
            expect(field).to_have_value("")
            assert field.get_attribute("placeholder")
        shot(page, f"{size}-points-teach-empty")

    def test_the_names_of_an_example_are_not_those_of_another_entity(self, page, tiny, size):
        to(page, "teach")
        page.get_by_role("button", name="Pickled Herrings").click()
        expect(page.locator("#teach-aliases")).to_have_value("The Pickled Herrings")
        page.locator("#teach-title").fill(f"Own of {size}")
        expect(page.locator("#teach-aliases")).to_have_value("")
        page.locator("#teach-description").fill("the qualifier of the opening")
        page.get_by_role("button", name="Teach and ask").click()
        expect(page.locator("#teach-results h2")).to_contain_text("Before it was")
        assert tiny.loaded.vectors.find("The Pickled Herrings") is None
        assert tiny.loaded.vectors.find(f"Own of {size}") is not None

    def test_before_and_now_on_a_handful_of_sentences(self, page, size, tiny_client):
        to(page, "teach")
        page.locator("#teach-title").fill(f"Checkland of {size}")
        page.locator("#teach-description").fill("the qualifier of the opening")
        page.get_by_role("button", name="Teach and ask").click()
        rows = page.locator(".checks tbody tr")
        expect(rows).to_have_count(5)
        expect(rows.first.locator("th")).to_have_text(f"Checkland of {size} is a [MASK].")
        answers = tiny_client.get("/api/check", params={"name": f"Checkland of {size}"}).json()["answers"]
        for row, answer in zip(rows.all(), answers, strict=True):
            assert answer["before"] != answer["after"]
            for cell, found in zip(row.locator("td").all(), (answer["before"], answer["after"]), strict=True):
                assert cell.locator("span:not(.soft)").all_inner_texts() == [one["token"] for one in found]
                expect(cell.locator(".soft")).to_have_count(3)
        shot(page, f"{size}-points-teach-check")


EMPTY = [
    ("fill", "#fill-text", "Ask BERT", "Write a sentence first, with [MASK] where the answer goes."),
    ("link", "#link-text", "Find entities", "Write or paste a text first."),
    ("explore", "#explore-name", "Explore", "Write the name of an entity first."),
    ("teach", "#teach-title", "Teach and ask", "Give the entity a title first."),
]


class TestWords:
    @pytest.mark.parametrize(("view", "field", "button", "words"), EMPTY, ids=[one[0] for one in EMPTY])
    def test_an_empty_field_in_words(self, page, size, view, field, button, words):
        to(page, view)
        page.locator(field).fill("  ")
        page.locator(f"#{view}-form").get_by_role("button", name=button).click()
        expect(page.locator(f"#view-{view} .trouble")).to_contain_text(words)
        expect(page.locator(field)).to_be_focused()
        shot(page, f"{size}-points-empty-{view}")

    def test_a_description_is_wanted_too(self, page):
        to(page, "teach")
        page.locator("#teach-title").fill("Nowhere")
        page.get_by_role("button", name="Teach and ask").click()
        expect(page.locator("#view-teach .trouble")).to_contain_text("Describe Nowhere first, in a sentence or two.")
        expect(page.locator("#teach-description")).to_be_focused()

    def test_a_name_that_was_meant_is_chosen(self, page, size):
        page.watch.expected.append("/api/explore")
        to(page, "explore")
        page.locator("#explore-name").fill("Englund")
        page.locator("#explore-name").press("Enter")
        trouble = page.locator("#view-explore .trouble")
        expect(trouble).to_contain_text("There is no entity 'Englund' here. Did you mean:")
        shot(page, f"{size}-points-did-you-mean")
        trouble.get_by_role("button", name="England", exact=True).click()
        expect(page.locator("#explore-results h2")).to_have_text("England")


def copied(page, name):
    """Press a button of the row that copies, and return what is in the clipboard."""
    page.locator(".view:not([hidden]) .copies").get_by_role("button", name=name, exact=True).click()
    expect(page.locator(".view:not([hidden]) .copies .hint")).to_have_text(f"{name} copied:")
    return page.evaluate("navigator.clipboard.readText()")


class TestLinks:
    """A result has an address, without the token, that shows it to whoever opens it."""

    def test_fill(self, browser, page, size):
        page.locator("#fill-text").fill(MARKED)
        page.locator("#fill-top").select_option("3")
        expect(page.locator("#fill-marks .chip")).to_have_count(1)
        settled(page, "fill")
        found = best(page, "fill")
        address = copied(page, "Link")
        assert address == page.url
        assert "token" not in address
        assert parse_qs(address.partition("#fill?")[2]) == {"text": [MARKED], "top": ["3"]}
        shot(page, f"{size}-points-copied")
        with opened(browser, address, size=size) as other:
            assert best(other, "fill") == found
            expect(other.locator("#fill-text")).to_have_value("Adams will miss the [MASK].")
            expect(other.locator("#fill-results .column").first.locator(".bar")).to_have_count(3)

    def test_link(self, browser, page, size):
        to(page, "link")
        page.locator("#link-text").fill(TEXT)
        page.locator("#link-rounds").select_option("3")
        page.get_by_role("button", name="Find entities").click()
        expect(page.locator(".linked .entity").first).to_contain_text("Adams")
        page.get_by_role("button", name="Earlier round").click()
        page.get_by_label("Show only entities with at least this probability").fill("5")
        page.locator(".linked .entity").first.click()
        heading = page.locator(".detail h2").inner_text()
        shown = page.locator(".linked").inner_text()
        page.keyboard.press("Escape") if size == "phone" else None  # the candidates would cover the buttons
        page.locator(".linked .entity").first.press("Enter")
        address = page.url
        values = parse_qs(address.partition("#link?")[2])
        assert values == {"text": [TEXT], "rounds": ["3"], "step": ["2"], "least": ["5"], "chosen": ["0"]}
        with opened(browser, address, size=size) as other:
            expect(other.locator(".detail h2")).to_have_text(heading)
            expect(other.locator(".where")).to_contain_text("Round 2 of 3")
            expect(other.locator(".controls output")).to_have_text("5% sure")
            assert other.locator(".linked").inner_text() == shown

    def test_explore(self, browser, page, size):
        for values, heading in ({"entity": "London"}, "London"), ({"word": "physics"}, "“physics”"):
            (kind, name), = values.items()  # fmt: skip
            page.goto(f"{page.url.partition('#')[0]}#explore?{kind}={name}")
            expect(page.locator("#explore-results h2")).to_have_text(heading)
            settled(page, "explore")
            with opened(browser, copied(page, "Link"), size=size) as other:
                expect(other.locator("#explore-results h2")).to_have_text(heading)

    def test_teach_fills_in_the_form_and_teaches_nothing(self, browser, page, tiny, size):
        before = len(tiny.loaded.vectors)
        values = "title=Linkland&description=the+qualifier&aliases=LL&question=%5B%5BTitle%5D%5D+is+%5BMASK%5D."
        with opened(browser, tiny.page, fragment=f"teach?{values}", size=size) as other:
            ready(other)
            names = ("title", "description", "aliases", "question")
            found = [other.locator(f"#teach-{name}").input_value() for name in names]
            assert found == ["Linkland", "the qualifier", "LL", "[[Title]] is [MASK]."]
        assert len(tiny.loaded.vectors) == before


def run(text, tiny_folder, monkeypatch):
    """Run copied commands where the folder of the model is; return what each prints."""
    monkeypatch.chdir(tiny_folder.parent)
    printed = []
    for line in text.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "ebert"
        done = CliRunner().invoke(cli, arguments)
        assert done.exit_code == 0, done.output
        printed.append(done.stdout)
    return printed


def run_code(text, tiny_folder, monkeypatch):
    """The same for copied Python."""
    monkeypatch.chdir(tiny_folder.parent)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(text, {})
    return printed.getvalue()


@pytest.mark.parametrize("size", ["desk"], indirect=True)
class TestCopies:
    """What is copied gives what is shown."""

    def test_fill(self, page, tiny_folder, monkeypatch):
        text = 'John\'s [[John Adams|"Adams"]] will miss the [MASK].'
        page.locator("#fill-text").fill(text)
        page.get_by_role("button", name="Ask BERT").click()
        expect(page.locator("#fill-marks .chip")).to_have_count(1)
        found = best(page, "fill")
        value = json.loads(copied(page, "JSON"))
        assert [one["masks"][0][0]["token"] for one in value["results"]] == found
        command, code = copied(page, "Command line"), copied(page, "Python")
        (printed,) = run(f"{command} --json", tiny_folder, monkeypatch)
        assert all(f'"token": "{token}"' in printed for token in found)
        lines = run_code(code, tiny_folder, monkeypatch).splitlines()
        assert [line.partition("Answer(token=")[2].partition(",")[0] for line in lines] == [repr(one) for one in found]

    def test_link(self, page, tiny_folder, monkeypatch):
        to(page, "link")
        page.locator("#link-text").fill(TEXT)
        page.get_by_role("button", name="Find entities").click()
        expect(page.locator(".linked .entity").first).to_contain_text("Adams")
        settled(page, "link")
        titles = page.locator(".linked .entity .title").all_inner_texts()
        assert [one["entity"] for one in json.loads(copied(page, "JSON"))["mentions"]] == titles
        command, code = copied(page, "Command line"), copied(page, "Python")
        (printed,) = run(command, tiny_folder, monkeypatch)
        assert all(f"[[{title}" in printed for title in titles)
        lines = run_code(code, tiny_folder, monkeypatch).splitlines()
        assert len(lines) == len(titles)
        assert all(title in line for title, line in zip(titles, lines, strict=True))

    def test_teach(self, page, tiny_folder, monkeypatch, size, tmp_path):
        to(page, "teach")
        page.locator("#teach-title").fill(f"Copyland of {size}")
        page.locator("#teach-description").fill("the qualifier of the opening")
        page.locator("#teach-aliases").fill("CL, Copied")
        page.get_by_role("button", name="Teach and ask").click()
        expect(page.locator("#teach-results h2")).to_contain_text("Before it was")
        found = best(page, "teach")
        command, code = copied(page, "Command line"), copied(page, "Python")
        command = command.replace("my-entities", str(tmp_path / "my-entities"))
        *_, printed = run(command, tiny_folder, monkeypatch)
        assert all(token in printed for token in found[1:])
        own = write_model(tmp_path)  # as the code writes into the store
        assert f"Answer(token={found[1]!r}" in run_code(code, own, monkeypatch)

    def test_explore(self, page, tiny_folder, monkeypatch):
        page.goto(f"{page.url.partition('#')[0]}#explore?entity=McDonald%27s")
        expect(page.locator("#explore-results h2")).to_have_text("McDonald's")
        settled(page, "explore")
        value = json.loads(copied(page, "JSON"))
        printed = run(copied(page, "Command line"), tiny_folder, monkeypatch)
        said = run_code(copied(page, "Python"), tiny_folder, monkeypatch).splitlines()
        for number, kind in enumerate(("entities", "words")):
            for one in value[kind]:
                assert one["name"] in printed[number]
                assert one["name"] in said[number]


def test_suggestions_stay_in_the_window(page, size):
    page.locator("#fill-text").fill("The native language of England is spoken in many places.")
    page.locator("#fill-text").evaluate("area => area.setSelectionRange(23, 30)")
    expect(page.locator("#fill-text-options [role=option]").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    shot(page, f"{size}-points-suggestions")
    box = page.locator(".popover.box").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= SIZES[size]["width"]


def test_long_words_do_not_widen_a_phone(browser, tiny):
    with opened(browser, tiny.page, size="phone") as page:
        page.watch.expected.append("/api/")
        word = "Donaudampfschifffahrtsgesellschaftskapitänswitwe" * 4
        page.locator("#fill-text").fill(f"[[{word}]] is a [MASK].")
        page.locator("#fill-text").press("Enter")
        expect(page.locator("#fill-results .notice")).to_contain_text(word)
        fits(page)
        page.get_by_role("tab", name="Link").click()
        page.locator("#link-text").fill(f"{word} in England")
        page.get_by_role("button", name="Find entities").click()
        expect(page.locator(".linked")).to_contain_text(word)
        fits(page)
        page.get_by_role("tab", name="Explore").click()
        page.locator("#explore-name").fill(word)
        page.get_by_role("button", name="Explore").click()
        expect(page.locator("#view-explore .trouble")).to_contain_text(word)
        fits(page)


def test_the_focus_is_always_seen(browser, tiny):
    with opened(browser, tiny.page) as page:
        ready(page)
        settled(page, "fill")
        seen = []
        for _ in range(30):
            page.keyboard.press("Tab")
            seen.append(page.evaluate(FOCUS))
        hidden = [one for one in seen if not one[0].startswith("<body") and (one[1] == "none" or one[2] < 2)]
        assert hidden == []
        assert len({one[0] for one in seen}) > 15
