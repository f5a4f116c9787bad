"""What people do on the page, in a real browser, with the real BERT and the starter's vectors."""

import threading

import pytest
from page_browser import best, opened, ready, settled
from playwright.sync_api import expect

from ebert.errors import EbertError
from ebert.serve.options import ServeOptions
from ebert.serve.server import Server, listen, url_of

pytestmark = pytest.mark.real

PLAIN = "The native language of Wim Wenders is [MASK]."


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
    def test_an_example_compares_the_modes(self, page):
        page.get_by_role("button", name="Wim Wenders").click()
        expect(page.locator("#fill-results h2")).to_have_text("BERT says Dutch; with the entity, German.")
        assert best(page, "fill") == ["Dutch", "German", "German"]
        columns = page.locator("#fill-results .column")
        expect(columns.nth(1).locator("[data-token=Portuguese]")).to_contain_text("new")
        expect(columns.nth(1).locator("[data-token=English]")).not_to_contain_text("new")
        expect(columns.nth(0).locator("[data-token=Danish]")).to_contain_text("lost")
        expect(columns.nth(1).locator(".best")).to_have_class("best changed")
        expect(columns.nth(0).locator(".best")).to_have_class("best")

    def test_an_example_of_the_paper_says_that_its_actor_is_unknown(self, page):
        page.get_by_role("button", name="Daniel Ceccaldi").click()
        expect(page.locator("#fill-results .note")).to_contain_text("This model does not know the entity")
        settled(page, "fill")
        assert best(page, "fill")[0] == "Italian"  # guessed from the name

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

    def test_words_alone_are_the_same_in_all_modes(self, page):
        write(page, PLAIN)
        ask(page)
        assert best(page, "fill") == ["Dutch", "Dutch", "Dutch"]
        expect(page.locator("#fill-results .notice")).to_contain_text("No entity is marked")

    def test_selecting_words_marks_an_entity(self, page):
        write(page, PLAIN)
        select(page, "Wim Wenders")
        expect(page.get_by_text("Which entity is “Wim Wenders”?")).to_be_visible()
        page.locator("#fill-text-options [role=option]").first.click()
        expect(page.locator("#fill-marks .chip")).to_contain_text("Wim Wenders")
        ask(page)
        assert best(page, "fill") == ["Dutch", "German", "German"]
        page.get_by_role("button", name="Unmark Wim Wenders").click()
        ask(page)
        expect(page.locator("#fill-results .notice")).to_be_visible()
        assert best(page, "fill") == ["Dutch"] * 3

    def test_a_name_can_mean_another_entity(self, page):
        write(page, "Birmingham is a city in [MASK].")
        select(page, "Birmingham")
        field = page.locator("#fill-text-entity")
        field.fill("birmingham, al")
        page.get_by_role("option", name="Birmingham, Alabama").click()
        expect(page.locator("#fill-marks .chip")).to_contain_text("Birmingham → Birmingham, Alabama")
        ask(page)
        assert best(page, "fill")[:2] == ["England", "Alabama"]

    def test_only_with_the_keyboard(self, page):
        page.locator("#fill-text").focus()
        page.keyboard.press("Control+a")
        page.keyboard.type("The native language of [[wim wend")
        expect(page.locator("#fill-text-typed [role=option] .title").first).to_have_text("Wim Wenders")
        page.keyboard.press("Enter")
        page.keyboard.type(" is [MASK].")
        expect(page.locator("#fill-text")).to_have_value(PLAIN)
        page.keyboard.press("Enter")
        expect(page.locator("#fill-results h2")).to_have_text("BERT says Dutch; with the entity, German.")

    def test_marking_with_the_keyboard(self, page):
        write(page, "Genesis is a [MASK].")
        page.keyboard.press("Home")
        page.keyboard.press("Control+e")  # the word at the caret
        expect(page.locator("#fill-text-entity")).to_be_focused()
        page.keyboard.type("genesis (b")
        expect(page.locator("#fill-text-options [role=option]").first).to_contain_text("Genesis (band)")
        page.keyboard.press("Enter")
        expect(page.locator("#fill-text")).to_be_focused()
        page.keyboard.press("Enter")
        assert best(page, "fill")[1:] == ["band", "band"]

    def test_arrow_keys_choose_and_escape_closes(self, page):
        write(page, "[[jaguar")
        options = page.locator("#fill-text-typed")
        expect(options.get_by_role("option").nth(1)).to_be_visible()
        for key, number in (("ArrowDown", 1), ("ArrowUp", 0)):
            page.keyboard.press(key)
            expect(page.locator("#fill-text")).to_have_attribute("aria-activedescendant", f"fill-text-typed-{number}")
            expect(options.locator("[aria-selected=true]")).to_have_id(f"fill-text-typed-{number}")
        page.keyboard.press("Escape")
        expect(options).to_be_hidden()
        expect(page.locator("#fill-text")).to_have_value("[[jaguar")

    def test_pasted_markup_counts_characters_as_the_service_does(self, page):
        write(page, "")
        page.evaluate("text => navigator.clipboard.writeText(text)", "🙂🙂 [[Jaguar]] is a [MASK].")
        page.keyboard.press("Control+v")
        expect(page.locator("#fill-text")).to_have_value("🙂🙂 Jaguar is a [MASK].")
        ask(page)
        settled(page, "fill")
        page.get_by_text("What the encoder reads").click()
        expect(page.locator(".piece.entity")).to_have_text(["Jaguar", "Jaguar"])  # in two modes; the word is another
        concat = page.locator(".read").nth(1).locator(".piece").all_inner_texts()
        assert concat[-8:] == ["Jaguar", "/", "Jaguar", "is", "a", "[MASK]", ".", "[SEP]"]

    def test_edits_keep_their_mentions_or_drop_them(self, page):
        page.get_by_role("button", name="Wim Wenders").click()
        settled(page, "fill")
        area = page.locator("#fill-text")
        area.press("Home")
        area.press_sequentially("Well: ")
        expect(page.locator("#fill-marks .chip")).to_have_count(1)
        expect(page.locator(".backdrop .entity")).to_have_text("Wim Wenders")
        area.press("End")
        for _ in range(len(" is [MASK].") + 1):
            area.press("Backspace")
        expect(page.locator("#fill-marks .chip")).to_have_count(0)

    def test_an_entity_without_a_vector_is_named(self, page):
        write(page, "[[Zorblax of Nowhere]] is a [MASK].")
        ask(page)
        expect(page.locator("#fill-results .notice")).to_contain_text("no vector for Zorblax of Nowhere")
        expect(page.locator(".chip.unknown")).to_contain_text("no vector")

    def test_two_masks(self, page):
        write(page, "[[Wim Wenders]] is a [MASK] film [MASK].")
        ask(page)
        expect(page.locator("#fill-results .blank")).to_have_text(["Blank 1", "Blank 2"])
        expect(page.locator("#fill-results .column")).to_have_count(6)


class TestLink:
    def link(self, page):
        page.get_by_role("tab", name="Link").click()
        page.get_by_role("button", name="The Beatles").click()
        expect(page.locator(".linked .entity")).to_have_count(5)

    def test_entities_with_confidence(self, page):
        self.link(page)
        found = page.locator(".linked .entity")
        labels = [one.get_attribute("aria-label") for one in found.all()]
        assert labels[0].startswith("Beatles: The Beatles, ")
        assert labels[1].startswith("Hamburg: Hamburg, ")
        assert labels[4].startswith("Paul McCartney: Paul McCartney, ")
        sure = [float(one.evaluate("node => node.style.getPropertyValue('--sure')")) for one in found.all()]
        shades = [one.evaluate("node => getComputedStyle(node).backgroundColor") for one in found.all()]
        assert sure[1] == min(sure)
        assert shades[1] != shades[0]
        expect(found.nth(1).locator(".sure")).to_have_text(f"{round(100 * sure[1])}%")

    def test_candidates_by_mouse_and_by_key(self, page):
        self.link(page)
        page.locator(".linked .entity", has_text="Hamburg").click()
        rows = page.locator(".detail tbody tr")
        expect(rows.first).to_contain_text("Hamburg")
        expect(rows.first).to_contain_text("chosen")
        expect(rows.last).to_contain_text("no entity")
        heads = page.locator(".detail thead th").all_inner_texts()
        assert heads == ["Candidate", "Prior", "Score", "Sure"]
        assert rows.count() > 2
        page.locator(".linked .entity", has_text="Liverpool").focus()
        page.keyboard.press("Enter")
        expect(page.locator(".detail h2")).to_have_text("“Liverpool”")
        expect(page.locator(".linked .entity[aria-pressed=true]")).to_be_focused()

    def test_rounds_can_be_stepped_through(self, page):
        self.link(page)
        where = page.locator(".where")
        expect(where).to_have_text("Round 3 of 3: 5 entities, 1 new")
        page.get_by_role("button", name="Earlier round").click()
        expect(page.locator(".linked .entity")).to_have_count(4)
        page.keyboard.press("Enter")
        expect(where).to_have_text("Round 1 of 3: 2 entities")
        expect(page.locator(".linked .entity")).to_have_count(2)
        page.get_by_role("button", name="Later round").click()
        expect(page.locator(".linked .entity.new")).to_have_count(2)

    def test_offsets_after_letters_beyond_the_first_plane(self, page):
        text = "🎸🎸 Paul McCartney played in Liverpool."
        page.get_by_role("tab", name="Link").click()
        page.locator("#link-text").fill(text)
        page.keyboard.press("Control+Enter")
        expect(page.locator(".linked .entity").first).to_contain_text("Paul McCartney")
        sure = "".join(page.locator(".linked .sure").all_inner_texts())
        shown = page.locator(".linked").inner_text()
        assert len(shown) == len(text) + len(sure)
        assert shown.startswith("🎸🎸 Paul McCartney")


class TestExplore:
    def test_from_suggestion_to_neighbours(self, page):
        page.get_by_role("tab", name="Explore").click()
        settled(page, "explore")
        field = page.locator("#explore-name")
        field.fill("isabelle adj")
        expect(page.get_by_role("option", name="Isabelle Adjani")).to_be_visible()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page.locator("#explore-results h2")).to_have_text("Isabelle Adjani")
        lists = page.locator("#explore-results .column")
        assert lists.locator("h3").all_inner_texts() == ["Entities", "Words", "Wordpieces"]
        assert [lists.nth(number).locator("li").count() for number in range(3)] == [12, 12, 12]
        expect(page.locator(".map .point")).to_have_count(25)
        expect(page.locator(".map .point.self")).to_have_attribute("data-name", "Isabelle Adjani")

    def test_points_lead_on_and_back_leads_back(self, page):
        page.goto(page.url.partition("#")[0] + "#explore/entity/France")
        expect(page.locator("#explore-results h2")).to_have_text("France")
        point = page.locator(".map .point.entity").first
        name = point.get_attribute("data-name")
        point.locator(".dot").click()
        expect(page.locator("#explore-results h2")).to_have_text(name)
        page.go_back()
        expect(page.locator("#explore-results h2")).to_have_text("France")

    def test_the_map_with_arrow_keys(self, page):
        page.goto(page.url.partition("#")[0] + "#explore/entity/France")
        expect(page.locator(".map .point.self")).to_have_attribute("data-name", "France")
        page.locator(".map .point.self").focus()
        seen = []
        for key in ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"):
            page.keyboard.press(key)
            seen.append(page.evaluate("document.activeElement.dataset.name"))
        assert len(set(seen)) > 1
        assert page.locator(".map .point[tabindex='0']").count() == 1
        name, kind = page.evaluate("[document.activeElement.dataset.name, document.activeElement.classList[1]]")
        page.keyboard.press("Enter")
        if kind != "self":
            expect(page.locator("#explore-results h2")).to_have_text(name if kind == "entity" else f"“{name}”")

    def test_a_word(self, page):
        page.goto(page.url.partition("#")[0] + "#explore/word/piano")
        expect(page.locator("#explore-results h2")).to_have_text("“piano”")
        assert page.locator("#explore-results .column li").count() == 24

    def test_an_unknown_name_in_words(self, page):
        page.watch.expected.append("/api/explore")
        page.get_by_role("tab", name="Explore").click()
        settled(page, "explore")
        page.locator("#explore-name").fill("Wim Wendels")
        page.get_by_role("button", name="Explore").click()
        expect(page.locator("#view-explore .trouble")).to_contain_text("There is no entity 'Wim Wendels' here")
        expect(page.locator("#view-explore .trouble")).to_contain_text("Wim Wenders")


class TestTeach:
    def test_an_answer_changes(self, page):
        page.get_by_role("tab", name="Teach").click()
        page.get_by_role("button", name="Pickled Herrings").click()
        page.get_by_role("button", name="Teach and ask").click()
        expect(page.locator("#teach-results h2")).to_have_text("Before it was dessert; now, band.")
        assert best(page, "teach") == ["dessert", "band", "band"]
        expect(page.locator("#teach-results .note")).to_contain_text("jazz, band")
        expect(page.locator("#teach-results .column").nth(1).locator("[data-token=band]")).to_contain_text("new")

        page.get_by_role("tab", name="Fill").click()  # and it is known everywhere
        write(page, "[[pickled")
        expect(page.locator("#fill-text-typed [role=option]").first).to_contain_text("added by you")

    def test_what_was_unknown_is_explored_once_it_is_taught(self, page):
        page.watch.expected.append("/api/explore")
        home = page.url.partition("#")[0]
        page.goto(f"{home}#explore/entity/Quuxland")
        expect(page.locator("#view-explore .trouble")).to_contain_text("There is no entity 'Quuxland' here")
        page.get_by_role("tab", name="Teach").click()
        page.locator("#teach-title").fill("Quuxland")
        page.locator("#teach-description").fill("Quuxland is a country in Europe.")
        page.get_by_role("button", name="Teach and ask").click()
        settled(page, "teach")
        page.goto(f"{home}#explore/entity/Quuxland")
        expect(page.locator("#explore-results h2").first).to_have_text("Quuxland")
        expect(page.locator("#view-explore .trouble")).to_be_hidden()

    def test_teaching_anew_is_asked_about(self, page):
        page.watch.expected.append("/api/entities")
        page.get_by_role("tab", name="Teach").click()
        page.get_by_role("button", name="Zorblax").click()
        page.locator("#teach-title").fill("Wim Wenders")
        page.get_by_role("button", name="Teach and ask").click()
        trouble = page.locator("#view-teach .trouble")
        expect(trouble).to_contain_text("There is an entity 'Wim Wenders' already")
        expect(trouble.get_by_role("button", name="Teach it anew")).to_be_visible()

    def test_without_the_token(self, browser, url):
        address, token = url.split("#token=")
        with opened(browser, f"{address}#teach") as page:
            page.watch.expected.append("/api/entities")
            ready(page)
            page.get_by_role("button", name="Zorblax").click()
            page.get_by_role("button", name="Teach and ask").click()
            expect(page.get_by_role("heading", name="This service wants its token")).to_be_visible()
            expect(page.locator("#view-teach .trouble")).to_contain_text("token")
            page.locator("#token").fill(token)
            page.get_by_role("button", name="Use this token").click()
            page.get_by_role("button", name="Teach and ask").click()
            assert best(page, "teach")[0] == "wine"
            assert best(page, "teach")[1] == "beer"


class TestTrouble:
    def test_the_services_words(self, page):
        page.watch.expected.append("/api/fill")
        write(page, "There is nothing to fill in here.")
        ask(page)
        expect(page.get_by_role("alert")).to_contain_text("The text has no mask; write [MASK] where the answer goes")
        write(page, "[[Jean Marais is [MASK].")
        ask(page)
        expect(page.get_by_role("alert")).to_contain_text("never closes it")

    def test_a_lost_connection(self, page):
        page.watch.expected.append("/api/")  # whatever the page asks for meanwhile
        settled(page, "fill")
        page.context.set_offline(True)
        ask(page)
        expect(page.get_by_role("alert")).to_contain_text("The service does not answer.")
        expect(page.locator("#fill-text")).to_have_value("The native language of Natalia Lafourcade is [MASK].")
        page.context.set_offline(False)
        ask(page)
        expect(page.locator("#view-fill .trouble")).to_be_hidden()
        assert best(page, "fill")[1] == "Spanish"

    def test_what_it_is_doing_is_said(self, page):
        settled(page, "fill")
        page.evaluate("""() => {
            window.said = [];
            const [status, results] = ["#view-fill .status", "#fill-results"].map((one) => document.querySelector(one));
            new MutationObserver(() => window.said.push([status.textContent, results.getAttribute("aria-busy")]))
                .observe(status, { childList: true, subtree: true });
        }""")
        page.get_by_role("button", name="Isabelle Adjani").click()
        expect(page.locator("#fill-results h2")).to_contain_text("Arabic")
        settled(page, "fill")
        said = page.evaluate("window.said")
        assert said[0] == ["Asking BERT with and without the entities …", "true"]
        assert said[-1][0].startswith("Answered in ")
        expect(page.locator("#fill-results")).not_to_have_attribute("aria-busy", "true")

    def test_texts_are_never_markup(self, page):
        page.watch.expected.append("/api/")
        evil = "<img src=x onerror=alert(1)>"
        write(page, f"[[{evil}]] is a [MASK]. {evil}")
        ask(page)
        expect(page.locator("#fill-results .notice")).to_contain_text(evil)
        page.get_by_role("tab", name="Teach").click()
        page.get_by_role("button", name="Zorblax").click()
        page.locator("#teach-title").fill(evil)
        page.get_by_role("button", name="Teach and ask").click()
        settled(page, "teach")
        page.goto(page.url.partition("#")[0] + "#explore/entity/%3Cimg%20src%3Dx%3E")
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

    def test_an_address_leads_to_its_view(self, browser, url):
        with opened(browser, url, fragment="explore/entity/Jaguar%20Cars") as page:
            expect(page.locator("#explore-results h2")).to_have_text("Jaguar Cars")
            assert "token" not in page.url
        with opened(browser, url, fragment="fill/%5B%5BJaguar%5D%5D%20is%20a%20%5BMASK%5D.") as page:
            assert best(page, "fill")[1] == "genus"
            expect(page.locator("#fill-text")).to_have_value("Jaguar is a [MASK].")
