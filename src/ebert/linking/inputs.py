"""The input X of the paper (Section 5.2): ``l_1 ... [E-MASK] / s_1 ... s_T * r_1 ...``, one sequence for each span.

Entities that were decoded in earlier rounds stand in the text as one vector each, in the place of their wordpieces.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ebert.linking.chunks import Chunk, Cutter, Placed

ENTITY = -1  # in the place of an id: an entity's vector stands here
Decoded = Mapping[Placed, str]  # spans of a chunk and the titles that they were linked to


@dataclass(frozen=True, slots=True)
class Laid:
    """A sequence for the encoder, with the spans that are asked about in it."""

    ids: list[int]
    positions: list[int]  # from 0
    entities: dict[int, str]  # place to the title of a decoded entity
    spans: list[Placed]
    masks: list[int]  # places of the spans' [E-MASK]
    text: int  # so many pieces are text, which attends to all text; the others are blocks
    blocks: list["Block"] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Block:
    """The pieces `start` to before `stop`, which see the text, except a part of it, and each other."""

    start: int
    stop: int
    hidden: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Text:
    """The wordpieces of a chunk, decoded entities as one piece each, and where its own pieces are in it."""

    ids: list[int]
    entities: dict[int, str]
    place: list[int]  # of each wordpiece of the chunk, and of its end


def lay_text(cutter: Cutter, chunk: Chunk, decoded: Decoded) -> Text:
    """Put decoded entities in the place of their wordpieces, and special tokens around all."""
    ids, entities, place = list(cutter.before), {}, []
    begins = {placed.first: (placed.stop, title) for placed, title in decoded.items()}
    number = 0
    while number < len(chunk):
        stop, title = begins.get(number, (number + 1, None))
        place += [len(ids)] * (stop - number)
        if title is not None:
            entities[len(ids)] = title
        ids.append(chunk.ids[number] if title is None else ENTITY)
        number = stop
    place.append(len(ids))
    return Text(ids + list(cutter.after), entities, place)


def lay_paper(cutter: Cutter, chunk: Chunk, spans: Sequence[Placed], decoded: Decoded) -> list[Laid]:
    """Lay out one sequence for each span: marks around it, and [E-MASK] before it."""
    text = lay_text(cutter, chunk, decoded)
    laid = []
    for span in spans:
        first, stop = text.place[span.first], text.place[span.stop]
        opening, closing = [cutter.mask, *cutter.slash], list(cutter.star)
        ids = text.ids[:first] + opening + text.ids[first:stop] + closing + text.ids[stop:]
        entities = {  # none is inside the span: what overlaps a decoded span is not asked about
            place if place < first else place + len(opening) + len(closing): title
            for place, title in text.entities.items()
        }
        laid.append(Laid(ids, list(range(len(ids))), entities, [span], [first], len(ids)))
    return laid
