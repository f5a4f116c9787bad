"""How the page looks: readable in light and dark, on a desk and on a phone. Screenshots are in build/screenshots."""

import pytest
from page_browser import SHOTS, opened, ready, settled
from playwright.sync_api import expect

pytestmark = pytest.mark.real

SIZES = {"desk": {"width": 1280, "height": 900}, "phone": {"width": 360, "height": 740}}

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


# What has the focus, and the outline around it.
FOCUS = """() => {
    const style = getComputedStyle(document.activeElement);
    return [document.activeElement.outerHTML.slice(0, 80), style.outlineStyle, parseFloat(style.outlineWidth)];
}"""


def readable(page):
    poor = [one for one in page.evaluate(CONTRASTS) if one[0] < one[1]]
    assert poor == []


def fits(page):
    """Nothing makes the page wider than its window."""
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


def looked_at(page, name):
    readable(page)
    fits(page)
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"{name}.png", full_page=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_views(browser, url, size, scheme):
    with opened(browser, url, viewport=SIZES[size], color_scheme=scheme, reduced_motion="reduce") as page:
        name = f"{size}-{scheme}"
        settled(page, "fill")
        looked_at(page, f"{name}-1-fill")

        page.get_by_role("tab", name="Link").click()
        page.get_by_role("button", name="The Beatles").click()
        page.locator(".linked .entity", has_text="Hamburg").click()
        looked_at(page, f"{name}-2-link")

        page.get_by_role("tab", name="Explore").click()
        settled(page, "explore")
        expect(page.locator(".map .point.self text")).to_be_visible()
        looked_at(page, f"{name}-3-explore")

        page.get_by_role("tab", name="Teach").click()
        page.locator("#teach-title").fill(f"The Band of {name}")  # one that was not taught yet
        page.get_by_role("button", name="Teach and ask").click()
        expect(page.locator("#teach-results h2")).to_contain_text("Before it was")
        settled(page, "teach")
        looked_at(page, f"{name}-4-teach")


@pytest.mark.parametrize("size", SIZES)
def test_suggestions_and_trouble(browser, url, size):
    with opened(browser, url, viewport=SIZES[size], color_scheme="light") as page:
        page.watch.expected.append("/api/fill")
        settled(page, "fill")
        page.locator("#fill-text").fill("The native language of Wim Wenders is spoken in many places.")
        page.locator("#fill-text").press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("no mask")
        looked_at(page, f"{size}-light-5-trouble")
        page.locator("#fill-text").evaluate("area => area.setSelectionRange(23, 34)")
        expect(page.locator("#fill-text-options [role=option]").first).to_be_visible()
        page.keyboard.press("ArrowDown")
        looked_at(page, f"{size}-light-6-suggestions")
        box = page.locator(".popover.box").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= SIZES[size]["width"]


def test_long_words_do_not_widen_a_phone(browser, url):
    with opened(browser, url, viewport=SIZES["phone"]) as page:
        page.watch.expected.append("/api/")
        word = "Donaudampfschifffahrtsgesellschaftskapitänswitwe" * 4
        page.locator("#fill-text").fill(f"[[{word}]] is a [MASK].")
        page.locator("#fill-text").press("Enter")
        expect(page.locator("#fill-results .notice")).to_contain_text(word)
        fits(page)
        page.get_by_role("tab", name="Link").click()
        page.locator("#link-text").fill(f"{word} in Liverpool")
        page.get_by_role("button", name="Find entities").click()
        expect(page.locator(".linked")).to_contain_text(word)
        fits(page)
        page.get_by_role("tab", name="Explore").click()
        page.locator("#explore-name").fill(word)
        page.get_by_role("button", name="Explore").click()
        expect(page.locator("#view-explore .trouble")).to_contain_text(word)
        fits(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_on_marks_is_readable(browser, url, scheme):
    with opened(browser, url, color_scheme=scheme) as page:
        settled(page, "fill")
        for ink, ground in page.evaluate(MARKS):
            assert contrast(colour(ink), colour(ground)) >= 4.5


def colour(written):
    return [int(part) / 255 for part in written.removeprefix("rgb(").removesuffix(")").split(",")]


def contrast(one, other):
    def light(rgb):
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in rgb]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_focus_is_always_seen(browser, url):
    with opened(browser, url) as page:
        ready(page)
        settled(page, "fill")
        seen = []
        for _ in range(30):
            page.keyboard.press("Tab")
            seen.append(page.evaluate(FOCUS))
        hidden = [one for one in seen if not one[0].startswith("<body") and (one[1] == "none" or one[2] < 2)]
        assert hidden == []
        assert len({one[0] for one in seen}) > 15
