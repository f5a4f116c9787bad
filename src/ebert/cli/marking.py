"""The entities that a text for ``ebert fill`` names: titles in another case, and what could have been marked."""

from collections.abc import Callable
from dataclasses import replace

from ebert.model.options import MASK
from ebert.text.passage import Mention, Passage
from ebert.text.titles import clean
from ebert.vectors.lookup import words_in
from ebert.vectors.store import Vectors

ALIKE = 20_000  # titles with the same words that are looked at
LIKELY = 0.1  # least link probability of words that are offered as an entity


class Marker:
    """Looks at the entities of passages, and says what somebody may have meant."""

    def __init__(self, vectors: Vectors, say: Callable[[str], None]) -> None:
        self._vectors, self._say = vectors, say
        self._offered = False  # it is said once

    def __call__(self, passage: Passage) -> Passage:
        """Return the passage with titles in the store's own case."""
        if not passage.mentions and not self._offered:
            self._offered = True
            self._offer(passage.text)
        return Passage(passage.text, tuple(map(self._known, passage.mentions)))

    def _known(self, mention: Mention) -> Mention:
        if self._vectors.find(mention.entity) is not None:
            return mention
        title = in_any_case(self._vectors, mention.entity)
        if title is None:
            return mention
        self._say(f"{mention.entity!r} is read as {title!r}")
        return replace(mention, entity=title)

    def _offer(self, text: str) -> None:
        found = named(self._vectors, text)
        hint = f"try: {Passage(text, tuple(found)).markup()}" if found else "mark one as [[Title]]"
        self._say(f"no entity is marked, so all modes give the same answers; {hint}")


def in_any_case(vectors: Vectors, name: str) -> str | None:
    """Return the only title that equals a name if case is ignored, or None."""
    wanted = clean(name).casefold()
    if not (words := words_in(name)):
        return None
    alike = vectors.matching(" ".join(f'"{word}"' for word in words), ALIKE)
    found = {entity.title for entity in alike if entity.title.casefold() == wanted}
    return found.pop() if len(found) == 1 else None


def named(vectors: Vectors, text: str) -> list[Mention]:
    """Return the entities that a text seems to name, by how often its words are links."""
    from ebert.linking.candidates.table import MentionTable
    from ebert.linking.document import Document
    from ebert.linking.prior import chosen

    spans = chosen(MentionTable(vectors)(Document("", text)), LIKELY, "longest")
    found = [Mention(span.start, span.end, span.choices[0].title) for span in spans]
    return [mention for mention in found if MASK not in text[mention.start - 1 : mention.end + 1]]
