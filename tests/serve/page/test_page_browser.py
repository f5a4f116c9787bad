"""What people do on the page, in a real browser, with a service of a tiny model (`test_page_real` has the real one)."""

import re
import threading

import pytest
from page_browser import best, opened, ready, settled
from playwright.sync_api import expect
from serve_world import TEXT

from ebert.errors import EbertError
from ebert.serve.options import ServeOptions
from ebert.serve.server import Server, listen, url_of

PLAIN = "Adams will miss the [MASK]."
MARKED = "[[John Adams|Adams]] will miss the [MASK]."


def answers(service, text):
    """What the model itself answers in every mode."""
    return [service.loaded.model.fill(text, mode=mode).masks[0][0].token for mode in ("bert", "concat", "replace")]


def write(page, text):
    area = page.locator("#fill-text")
    settled(page, "fill")
    area.fill("")
    area.press_sequentially(text)


def select(page, words):
    """Drag the mouse over words of the sentence."""
    rect = page.evaluate(
        """(words) => {
            const backdrop = document.querySelector("#fill-editor .backdrop");
            const walker = document.createTreeWalker(backdrop, NodeFilter.SHOW_TEXT);
            for (let node; (node = walker.nextNode()); ) {
                const at = node.data.indexOf(words);
                if (at < 0) continue;
                const range = document.createRange();
                range.setStart(node, at);
                range.setEnd(node, at + words.length);
                const { left, right, top, bottom } = range.getBoundingClientRect();
                return { left, right, middle: (top + bottom) / 2 };
            }
        }""",
        words,
    )
    page.mouse.move(rect["left"] + 1, rect["middle"])
    page.mouse.down()
    page.mouse.move(rect["right"] - 1, rect["middle"], steps=4)
    page.mouse.up()


def ask(page):
    page.get_by_role("button", name="Ask BERT").click()


class TestFill:
    def test_the_answers_are_those_of_the_model(self, page, tiny):
        settled(page, "fill")
        page.locator("#fill-text").fill(MARKED)
        ask(page)
        assert best(page, "fill") == answers(tiny, MARKED)
        expect(page.locator("#fill-results .notice")).to_be_hidden()

    def test_an_example_of_the_paper_says_that_its_actor_is_unknown(self, page):
        page.get_by_role("button", name="Sylvia Lopez").click()
        expect(page.locator("#fill-results .note")).to_contain_text("This model does not know the entity")

    def test_words_alone_are_the_same_in_all_modes(self, page, tiny):
        write(page, PLAIN)
        ask(page)
        assert best(page, "fill") == answers(tiny, PLAIN)[:1] * 3
        expect(page.locator("#fill-results .notice")).to_contain_text("No entity is marked")

    def test_selecting_words_marks_an_entity(self, page, tiny):
        write(page, PLAIN)
        select(page, "Adams")
        expect(page.get_by_text("Which entity is “Adams”?")).to_be_visible()
        page.locator("#fill-text-entity").fill("john ad")
        page.get_by_role("option", name="John Adams").click()
        expect(page.locator("#fill-marks .chip")).to_contain_text("Adams → John Adams")
        ask(page)
        assert best(page, "fill") == answers(tiny, MARKED)
        page.get_by_role("button", name="Unmark Adams").click()
        ask(page)
        expect(page.locator("#fill-results .notice")).to_be_visible()

    def test_only_with_the_keyboard(self, page, tiny):
        page.locator("#fill-text").focus()
        page.keyboard.press("Control+a")
        page.keyboard.type("[[john ad")
        expect(page.locator("#fill-text-typed [role=option] .title").first).to_have_text("John Adams")
        page.keyboard.press("Enter")
        page.keyboard.type(" will miss the [MASK].")
        expect(page.locator("#fill-text")).to_have_value("John Adams will miss the [MASK].")
        page.keyboard.press("Enter")
        expect(page.locator("#fill-marks .chip")).to_have_text("John Adams×")
        settled(page, "fill")
        assert best(page, "fill") == answers(tiny, "[[John Adams]] will miss the [MASK].")

    def test_marking_with_the_keyboard(self, page):
        write(page, "Adams is a [MASK].")
        page.keyboard.press("Home")
        page.keyboard.press("Control+e")  # the word at the caret
        expect(page.locator("#fill-text-entity")).to_be_focused()
        page.keyboard.type("tony a")
        expect(page.locator("#fill-text-options [role=option]").first).to_contain_text("Tony Adams (footballer)")
        page.keyboard.press("Enter")
        expect(page.locator("#fill-text")).to_be_focused()
        expect(page.locator("#fill-marks .chip")).to_contain_text("Adams → Tony Adams (footballer)")

    def test_arrow_keys_choose_and_escape_closes(self, page):
        write(page, "[[england")
        options = page.locator("#fill-text-typed")
        expect(options.get_by_role("option").nth(1)).to_be_visible()
        for key, number in (("ArrowDown", 1), ("ArrowUp", 0)):
            page.keyboard.press(key)
            expect(page.locator("#fill-text")).to_have_attribute("aria-activedescendant", f"fill-text-typed-{number}")
            expect(options.locator("[aria-selected=true]")).to_have_id(f"fill-text-typed-{number}")
        page.keyboard.press("Escape")
        expect(options).to_be_hidden()
        expect(page.locator("#fill-text")).to_have_value("[[england")

    def test_pasted_markup_counts_characters_as_the_service_does(self, page):
        write(page, "")
        page.evaluate("text => navigator.clipboard.writeText(text)", "🙂🙂 [[England]] is a [MASK].")
        page.keyboard.press("Control+v")
        expect(page.locator("#fill-text")).to_have_value("🙂🙂 England is a [MASK].")
        ask(page)
        settled(page, "fill")
        page.get_by_text("What the encoder reads").click()
        expect(page.locator(".piece.entity")).to_have_text(["England", "England"])  # in two modes; the word is another
        concat = page.locator(".read").nth(1).locator(".piece").all_inner_texts()
        assert concat[2:5] == ["England", "/", "England"]

    def test_edits_keep_their_mentions_or_drop_them(self, page):
        settled(page, "fill")
        area = page.locator("#fill-text")
        area.fill("[[England]] is [MASK].")
        area.press("Home")
        area.press_sequentially("Well: ")
        expect(page.locator("#fill-marks .chip")).to_have_count(1)
        expect(page.locator(".backdrop .entity")).to_have_text("England")
        area.press("End")
        for _ in range(len(" is [MASK].") + 1):
            area.press("Backspace")
        expect(page.locator("#fill-marks .chip")).to_have_count(0)

    def test_an_entity_without_a_vector_is_named(self, page):
        settled(page, "fill")
        page.locator("#fill-text").fill("[[Zorblax of Nowhere]] is a [MASK].")
        ask(page)
        expect(page.locator("#fill-results .notice")).to_contain_text("no vector for Zorblax of Nowhere")
        expect(page.locator(".chip.unknown")).to_contain_text("no vector")

    def test_two_masks(self, page):
        settled(page, "fill")
        page.locator("#fill-text").fill("[[England]] is a [MASK] and [MASK].")
        ask(page)
        expect(page.locator("#fill-results .blank")).to_have_text(["Blank 1", "Blank 2"])
        expect(page.locator("#fill-results .column")).to_have_count(6)


class TestLink:
    def test_offsets_after_letters_beyond_the_first_plane(self, page):
        page.get_by_role("tab", name="Link").click()
        page.locator("#link-text").fill(f"🎸🎸 {TEXT}")
        page.keyboard.press("Control+Enter")
        expect(page.locator(".linked")).to_contain_text("🎸🎸 ")
        first = page.locator(".linked .entity").first
        expect(first).to_have_text(re.compile("^Adams: .*Adams"))
        labels = page.locator(".linked .label").all_text_contents()
        shown = page.locator(".linked").text_content()
        for words in labels:
            shown = shown.replace(words, "", 1)
        assert shown == f"🎸🎸 {TEXT}"


class TestExplore:
    def test_from_suggestion_to_neighbours(self, page):
        page.get_by_role("tab", name="Explore").click()
        field = page.locator("#explore-name")
        field.fill("john ad")
        expect(page.get_by_role("option", name="John Adams")).to_be_visible()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page.locator("#explore-results h2")).to_have_text("John Adams")
        lists = page.locator("#explore-results .column")
        assert lists.locator("h3").all_inner_texts() == ["Entities", "Words", "Wordpieces"]
        assert [lists.nth(number).locator("li").count() for number in range(2)] == [12, 11]
        expect(page.locator(".map .point")).to_have_count(24)
        expect(page.locator(".map .point.self")).to_have_attribute("data-name", "John Adams")

    def test_points_lead_on_and_back_leads_back(self, page):
        page.goto(page.url.partition("#")[0] + "#explore?entity=London")
        expect(page.locator("#explore-results h2")).to_have_text("London")
        point = page.locator(".map .point.entity").first
        name = point.get_attribute("data-name")
        point.locator(".dot").click()
        expect(page.locator("#explore-results h2")).to_have_text(name)
        page.go_back()
        expect(page.locator("#explore-results h2")).to_have_text("London")

    def test_the_map_with_arrow_keys(self, page):
        page.goto(page.url.partition("#")[0] + "#explore?entity=London")
        expect(page.locator(".map .point.self")).to_have_attribute("data-name", "London")
        page.locator(".map .point.self").focus()
        seen = []
        for key in ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"):
            page.keyboard.press(key)
            seen.append(page.evaluate("document.activeElement.dataset.name"))
            expect(page.locator(".map .callout text")).to_have_text(seen[-1])
        assert len(set(seen)) > 1
        assert page.locator(".map .point[tabindex='0']").count() == 1
        name, kind = page.evaluate("[document.activeElement.dataset.name, document.activeElement.classList[1]]")
        page.keyboard.press("Enter")
        if kind != "self":
            expect(page.locator("#explore-results h2")).to_have_text(name if kind == "entity" else f"“{name}”")


class TestTeach:
    def test_what_was_unknown_is_known_everywhere_once_it_is_taught(self, page):
        page.watch.expected.append("/api/explore")
        home = page.url.partition("#")[0]
        page.goto(f"{home}#explore?entity=Quuxland")
        expect(page.locator("#view-explore .trouble")).to_contain_text("There is no entity 'Quuxland' here")
        page.get_by_role("tab", name="Teach").click()
        page.locator("#teach-title").fill("Quuxland")
        page.locator("#teach-description").fill("the qualifier of the opening")
        page.get_by_role("button", name="Teach and ask").click()
        expect(page.locator("#teach-results .note")).to_contain_text("the, qualifier, of, opening")
        page.goto(f"{home}#explore?entity=Quuxland")
        expect(page.locator("#explore-results h2").first).to_have_text("Quuxland")
        expect(page.locator("#view-explore .trouble")).to_be_hidden()
        page.get_by_role("tab", name="Fill").click()
        write(page, "[[quux")
        expect(page.locator("#fill-text-typed [role=option]").first).to_contain_text("added by you")

    def test_teaching_anew_is_asked_about(self, page):
        page.watch.expected.append("/api/entities")
        page.get_by_role("tab", name="Teach").click()
        page.locator("#teach-title").fill("London")
        page.locator("#teach-description").fill("the qualifier of the opening")
        page.get_by_role("button", name="Teach and ask").click()
        trouble = page.locator("#view-teach .trouble")
        expect(trouble).to_contain_text("There is an entity 'London' already")
        trouble.get_by_role("button", name="Teach it again").click()
        expect(page.locator("#teach-results .note")).to_contain_text("the, qualifier, of, opening")

    def test_without_the_token(self, browser, tiny):
        address, token = tiny.page.split("#token=")
        with opened(browser, f"{address}#teach") as page:
            page.watch.expected.append("/api/entities")
            ready(page)
            page.locator("#teach-title").fill("Tokenland")
            page.locator("#teach-description").fill("the qualifier of the opening")
            page.get_by_role("button", name="Teach and ask").click()
            expect(page.get_by_role("heading", name="This service needs its token")).to_be_visible()
            expect(page.locator("#view-teach .trouble")).to_contain_text("token")
            page.locator("#token").fill(token)
            page.get_by_role("button", name="Use this token").click()
            page.get_by_role("button", name="Teach and ask").click()
            expect(page.locator("#teach-results h2")).to_contain_text("Before it was")


class TestTrouble:
    def test_the_services_words(self, page):
        page.watch.expected.append("/api/fill")
        settled(page, "fill")
        page.locator("#fill-text").fill("There is nothing to fill in here.")
        ask(page)
        expect(page.get_by_role("alert")).to_contain_text("The text has no mask; write [MASK] where the answer goes")
        page.locator("#fill-text").fill("[[England is [MASK].")
        ask(page)
        expect(page.get_by_role("alert")).to_contain_text("never closes it")

    def test_a_lost_connection(self, page):
        page.watch.expected.append("/api/")  # whatever the page asks for meanwhile
        settled(page, "fill")
        before = page.locator("#fill-text").input_value()
        page.context.set_offline(True)
        ask(page)
        expect(page.get_by_role("alert")).to_contain_text("The service does not answer.")
        expect(page.locator("#fill-text")).to_have_value(before)
        page.context.set_offline(False)
        ask(page)
        expect(page.locator("#view-fill .trouble")).to_be_hidden()
        expect(page.locator("#fill-results .column")).to_have_count(3)

    def test_what_it_is_doing_is_said(self, page):
        settled(page, "fill")
        page.evaluate("""() => {
            window.said = [];
            const [status, results] = ["#view-fill .status", "#fill-results"].map((one) => document.querySelector(one));
            new MutationObserver(() => window.said.push([status.textContent, results.getAttribute("aria-busy")]))
                .observe(status, { childList: true, subtree: true });
        }""")
        page.get_by_role("button", name="Orane Demazis").click()
        expect(page.locator("#fill-results .note")).to_contain_text("born in Algeria")
        settled(page, "fill")
        said = page.evaluate("window.said")
        assert said[0] == ["Asking BERT with and without the entities …", "true"]
        assert said[-1][0].startswith("Answered in ")
        expect(page.locator("#fill-results")).not_to_have_attribute("aria-busy", "true")

    def test_texts_are_never_markup(self, page):
        page.watch.expected.append("/api/")
        evil = "<img src=x onerror=alert(1)>"
        settled(page, "fill")
        page.locator("#fill-text").fill(f"[[{evil}]] is a [MASK]. {evil}")
        ask(page)
        expect(page.locator("#fill-results .notice")).to_contain_text(evil)
        page.get_by_role("button", name="Command line").click()
        expect(page.locator(".copies pre")).to_contain_text(evil)
        page.get_by_role("tab", name="Teach").click()
        page.locator("#teach-title").fill(evil)
        page.locator("#teach-description").fill(f"the qualifier of {evil}")
        page.get_by_role("button", name="Teach and ask").click()
        expect(page.locator("#teach-results .checks")).to_contain_text(evil)
        page.goto(page.url.partition("#")[0] + "#explore?entity=%3Cimg%20src%3Dx%3E")
        expect(page.locator("#view-explore .trouble")).to_contain_text("<img src=x>")
        assert page.locator("main img").count() == 0


@pytest.fixture
def loading():
    """A service that others can reach, with a model that is not loaded before the test ends."""
    options = ServeOptions(host="0.0.0.0", port=0, token="a-token-for-the-tests")
    socket = listen(options)
    end = threading.Event()

    def load():
        end.wait()
        raise EbertError("it was never meant to be loaded")

    running = Server(options, socket, load)
    thread = threading.Thread(target=running.run)
    thread.start()
    yield running, thread, url_of(options, socket, token=True)
    running.stop()
    thread.join()
    end.set()


class TestWaiting:
    def test_loading_then_gone(self, browser, loading):
        running, thread, url = loading
        with opened(browser, url) as page:
            page.watch.expected.append("/api/model")
            expect(page.locator("#model")).to_contain_text("The model is still loading")
            running.stop()
            thread.join()
            expect(page.locator("#model")).to_contain_text("The service does not answer")

    def test_a_token_for_everything(self, browser, loading):
        _, _, url = loading
        with opened(browser, url.partition("#")[0]) as page:
            page.watch.expected.append("/api/model")
            expect(page.locator("#gate")).to_be_visible()
            page.locator("#token").fill("a-token-for-the-tests")
            page.keyboard.press("Enter")
            expect(page.locator("#gate")).to_be_hidden()
            expect(page.locator("#model")).to_contain_text("The model is still loading")


class TestTabs:
    def test_arrow_keys(self, page):
        page.get_by_role("tab", name="Fill").focus()
        for key, name in (("ArrowRight", "link"), ("End", "teach"), ("ArrowRight", "fill"), ("ArrowLeft", "teach"),
                          ("ArrowLeft", "explore"), ("Home", "fill")):  # fmt: skip
            page.keyboard.press(key)
            expect(page.locator(f"#tab-{name}")).to_be_focused()
            expect(page.locator(f"#tab-{name}")).to_have_attribute("aria-selected", "true")
            expect(page.get_by_role("tabpanel")).to_have_attribute("id", f"view-{name}")
        assert page.get_by_role("tab").evaluate_all("tabs => tabs.map((tab) => tab.tabIndex)") == [0, -1, -1, -1]

    def test_a_view_comes_back_as_it_was_left(self, page):
        settled(page, "fill")
        page.locator("#fill-text").fill(MARKED)
        ask(page)
        expect(page.locator("#fill-marks .chip")).to_have_count(1)
        settled(page, "fill")
        here = page.url
        page.get_by_role("tab", name="Teach").click()
        page.get_by_role("tab", name="Fill").click()
        assert page.url == here
        expect(page.locator("#fill-text")).to_have_value("Adams will miss the [MASK].")
