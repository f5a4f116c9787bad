"""The page with the real BERT and the starter's vectors: what it answers, how it looks, and the pictures of the docs.

All that needs the real model is here, so that it is loaded once. Pictures are in build/screenshots;
`EBERT_IMAGES=write python -m pytest tests/serve/page/test_page_real.py -k pictures` renews those in docs/images.
"""

import os
from pathlib import Path

import pytest
from page_browser import SIZES, accessible, best, fits, opened, ready, settled, shot, visited
from PIL import Image
from playwright.sync_api import expect

pytestmark = pytest.mark.real

IMAGES = Path(__file__).parents[3] / "docs" / "images"

# The contrast of every text that is seen, by the formula of WCAG 2: [ratio, what is needed, text].
CONTRASTS = """() => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const rgba = (colour) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const light = (rgb) => {
        const [r, g, b] = rgb.slice(0, 3).map((value) => value / 255)
            .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ground = (node) => {
        for (let at = node; at; at = at.parentElement) {
            const colour = rgba(getComputedStyle(at).backgroundColor);
            if (colour[3] === 255) return colour;
        }
        return [255, 255, 255, 255];
    };
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const found = [];
    for (let text; (text = walker.nextNode()); ) {
        const node = text.parentElement;
        const unseen = node.closest(".backdrop, .unseen, .skip, noscript") || !node.checkVisibility();
        if (unseen || !text.data.trim()) continue;
        const style = getComputedStyle(node);
        const colour = rgba(node instanceof SVGElement ? style.fill : style.color);
        const [one, other] = [light(colour), light(ground(node))].sort((a, b) => b - a);
        const size = parseFloat(style.fontSize);
        const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
        found.push([(one + 0.05) / (other + 0.05), large ? 3 : 4.5, text.data.trim()]);
    }
    return found;
}"""

# What lies under the sentence, which the text area shows through: the colour of its text against both kinds of marks.
MARKS = """() => {
    const area = getComputedStyle(document.querySelector("#fill-text")).color;
    return [".backdrop .entity", ".backdrop .mask"].map((one) =>
        [area, getComputedStyle(document.querySelector(one)).backgroundColor]);
}"""


@pytest.fixture(scope="module")
def window(browser, url):
    with opened(browser, url) as found:
        yield found


@pytest.fixture
def page(window, url):
    """The page as somebody sees it who opens the printed URL; at the end, nothing may have gone wrong."""
    with visited(window, url) as found:
        yield found


# The pictures of the docs: what is shown, the name, and how high the window is.
PICTURES = {
    "page": ("fill?text=The+native+language+of+%5B%5BNatalia+Lafourcade%5D%5D+is+%5BMASK%5D.", 1104),
    "link": ("link", 1010),
    "explore": ("explore?entity=The+Beatles", 1040),
    "teach": (
        "teach?title=Smoked+Herrings&description=The+Smoked+Herrings+are+a+jazz+band+from+Gothenburg.+Their+saxophone+"
        "player+also+writes+the+music.",
        960,
    ),
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_of_the_docs(browser, url, name, tmp_path):
    """Each can be taken, and the one in the docs is of its size, and small."""
    fragment, height = PICTURES[name]
    viewport = {"width": 1200, "height": height}
    with opened(browser, url, fragment=fragment, size="desk", viewport=viewport) as page:
        ready(page)
        if name == "teach":
            page.get_by_role("button", name="Teach and ask").click()
            expect(page.locator(".checks tbody tr")).to_have_count(5)
        settled(page, fragment.partition("?")[0])
        if name == "link":
            page.locator(".linked .entity", has_text="Hamburg").click()
        page.evaluate("document.querySelector('.view:not([hidden]) .status').hidden = true")  # seconds vary
        page.evaluate("scrollTo(0, 0)") if name != "teach" else None  # there, the answers are below a long form
        page.mouse.move(0, 0)
        page.screenshot(path=tmp_path / "shot.png")
    with Image.open(tmp_path / "shot.png") as shown:
        taken = shown.convert("RGB")
    if os.environ.get("EBERT_IMAGES") == "write":
        IMAGES.mkdir(exist_ok=True)
        taken.quantize(128, dither=Image.Dither.NONE).save(IMAGES / f"{name}.png", optimize=True)
    kept = IMAGES / f"{name}.png"
    assert kept.stat().st_size < 150_000
    with Image.open(kept) as picture:
        assert picture.size == taken.size


class TestAnswers:
    def test_an_example_compares_the_modes(self, page):
        page.get_by_role("button", name="Isabelle Adjani").click()
        expect(page.locator("#fill-results h2")).to_have_text("BERT says Arabic; with the entity, French.")
        assert best(page, "fill") == ["Arabic", "French", "French"]
        columns = page.locator("#fill-results .column")
        words = [
            column.locator("[data-token]").evaluate_all("all => all.map((one) => one.dataset.token)")
            for column in columns.all()
        ]
        assert {*words[1]} - {*words[0]}
        assert {*words[0]} - {*words[1], *words[2]}
        for number, own in enumerate(words):  # what plain BERT has not is new, what only it has is lost
            for word in own:
                mark = (
                    "new" if word not in words[0] else "lost" if number == 0 and word not in words[1] + words[2] else ""
                )
                row = columns.nth(number).locator(f"[data-token={word}]")
                assert [one for one in ("new", "lost") if one in row.inner_text()] == [mark][: bool(mark)], (
                    number,
                    word,
                )
        expect(columns.nth(1).locator(".best")).to_have_class("best changed")
        expect(columns.nth(0).locator(".best")).to_have_class("best")

    def test_bars_are_as_long_as_answers_are_probable(self, page):
        settled(page, "fill")
        rows = page.locator("#fill-results .column").nth(1).locator(".bar")
        shares = rows.evaluate_all("""rows => rows.map((row) => {
            const wide = (part) => row.querySelector(part).getBoundingClientRect().width;
            return [wide(".fill") / wide(".track"), parseFloat(row.querySelector(".share").textContent) / 100];
        })""")
        assert len(shares) == 5
        assert all(abs(drawn - said) < 0.02 for drawn, said in shares)
        assert shares[0][0] > 0.5

    def test_linking_round_by_round(self, page):
        page.get_by_role("tab", name="Link").click()
        found, where = page.locator(".linked .entity"), page.locator(".where")
        expect(where).to_contain_text("Round 1 of 1")  # the linker's own
        page.locator("#link-rounds").select_option("3")
        page.get_by_role("button", name="Find entities").click()
        expect(where).to_contain_text("Round 3 of 3")
        expect(found).to_have_count(5)
        titles = page.locator(".linked .entity .title").all_inner_texts()
        assert titles == ["The Beatles", "Hamburg", "Liverpool", "John Lennon", "Paul McCartney"]
        sure = [float(one.evaluate("node => node.style.getPropertyValue('--sure')")) for one in found.all()]
        shades = [one.evaluate("node => getComputedStyle(node).backgroundColor") for one in found.all()]
        assert sure[1] == min(sure)
        assert shades[1] != shades[0]
        expect(found.nth(1).locator(".sure")).to_have_text(f"{round(100 * sure[1])}%")
        expect(where).to_have_text("Round 3 of 3: 5 entities, 1 new")
        page.get_by_role("button", name="Earlier round").click()
        expect(found).to_have_count(4)
        page.keyboard.press("Enter")
        expect(where).to_have_text("Round 1 of 3: 2 entities")
        expect(found).to_have_count(2)
        page.get_by_role("button", name="Later round").click()
        expect(page.locator(".linked .entity.new")).to_have_count(2)

    def test_candidates_by_mouse_and_by_key(self, page):
        page.get_by_role("tab", name="Link").click()
        page.locator(".linked .entity", has_text="Hamburg").click()
        rows = page.locator(".detail tbody tr")
        expect(rows.first).to_contain_text("Hamburg")
        expect(rows.first).to_contain_text("chosen")
        expect(rows.last).to_contain_text("no entity")
        assert page.locator(".detail thead th").all_inner_texts() == ["Candidate", "Prior", "Score", "Sure"]
        assert rows.count() > 2
        page.locator(".linked .entity", has_text="Liverpool").focus()
        page.keyboard.press("Enter")
        expect(page.locator(".detail h2")).to_have_text("“Liverpool”")
        expect(page.locator(".linked .entity[aria-pressed=true]")).to_be_focused()

    def test_what_is_taught_changes_an_answer(self, page):
        page.get_by_role("tab", name="Teach").click()
        page.get_by_role("button", name="Zorblax").click()
        page.get_by_role("button", name="Teach and ask").click()
        expect(page.locator("#teach-results h2")).to_have_text("Before it was wine; now, beer.")
        assert best(page, "teach") == ["wine", "beer", "beer"]
        expect(page.locator("#teach-results .note")).to_contain_text("brewery")


@pytest.mark.parametrize("size", SIZES)
def test_every_point_of_the_map_has_a_label(browser, url, size):
    """On a desk where the mouse is on it, on a phone at the first tap; the second one opens it."""
    with opened(browser, url, fragment="explore?entity=Natalia+Lafourcade", size=size) as page:
        points = page.locator(".map .point")
        expect(points).to_have_count(25)
        frame = page.locator(".map")
        frame.scroll_into_view_if_needed()
        label = page.locator(".map .callout text")
        for point in points.all():
            dot = point.locator(".dot").bounding_box()
            at = dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2
            page.mouse.move(*at) if size == "desk" else page.touchscreen.tap(*at)
            expect(label).to_have_text(point.get_attribute("data-name"))
            box, map_ = page.locator(".map .callout rect").bounding_box(), frame.bounding_box()
            assert map_["x"] <= box["x"]
            assert box["x"] + box["width"] <= map_["x"] + map_["width"] + 1
            assert map_["y"] <= box["y"]
            assert box["y"] + box["height"] <= map_["y"] + map_["height"]
        name = label.text_content()
        shot(page, f"{size}-light-map")
        page.mouse.click(*at) if size == "desk" else page.touchscreen.tap(*at)
        expect(page.locator("#explore-results h2")).to_contain_text(name)


def readable(page):
    poor = [one for one in page.evaluate(CONTRASTS) if one[0] < one[1]]
    assert poor == []


def looked_at(page, name):
    """In light and dark: every text can be read, nothing is too wide, and axe-core finds nothing."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        readable(page)
        accessible(page, *(["color-contrast"] if scheme == "dark" else []))  # all else is the same in both
        size, _, view = name.partition("-")
        shot(page, f"{size}-{scheme}-{view}")
    fits(page)


@pytest.mark.parametrize("size", SIZES)
def test_views(browser, url, size):
    with opened(browser, url, size=size) as page:
        settled(page, "fill")
        looked_at(page, f"{size}-1-fill")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            for ink, ground in page.evaluate(MARKS):
                assert contrast(colour(ink), colour(ground)) >= 4.5

        page.get_by_role("tab", name="Link").click()
        page.locator(".linked .entity", has_text="Hamburg").click()
        looked_at(page, f"{size}-2-link")

        page.get_by_role("tab", name="Explore").click()
        settled(page, "explore")
        expect(page.locator(".map .point.self text")).to_be_visible()
        looked_at(page, f"{size}-3-explore")

        page.get_by_role("tab", name="Teach").click()
        page.get_by_role("button", name="Pierre Dubois").click()
        page.locator("#teach-title").fill(f"Pierre of a {size}")  # one that was not taught yet
        page.get_by_role("button", name="Teach and ask").click()
        expect(page.locator("#teach-results h2")).to_contain_text("Before it was")
        settled(page, "teach")
        looked_at(page, f"{size}-4-teach")


def colour(written):
    return [int(part) / 255 for part in written.removeprefix("rgb(").removesuffix(")").split(",")]


def contrast(one, other):
    def light(rgb):
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in rgb]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)
