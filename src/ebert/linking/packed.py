"""All spans of a chunk in one pass of the encoder: the text once, and a small block for each span after it.

The text attends to itself only, so that it is what it would be without the blocks. A block attends to the text and to
itself, and nothing else attends to it; its pieces have the positions of their span. (Packed levitated markers do so for
named entities.) A chunk costs its own length and a few positions for each span, instead of a pass for each.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ebert.errors import EbertError
from ebert.linking.chunks import Chunk, Cutter, Placed
from ebert.linking.inputs import Block, Decoded, Laid, lay_text
from ebert.linking.options import Block as Kind
from ebert.model.encoder import Encoder

MOST = 1024  # positions of blocks in a pass: beyond that, attention among them costs more than the text once again


def lay_packed(cutter: Cutter, chunk: Chunk, spans: Sequence[Placed], decoded: Decoded, *, block: Kind) -> list[Laid]:
    """Lay out the text and a block for each span; very many spans are spread over several sequences."""
    text = lay_text(cutter, chunk, decoded)
    laid: list[Laid] = []
    now: Laid | None = None
    for span in spans:
        first, stop = text.place[span.first], text.place[span.stop]
        inside = range(first, stop) if block == "copy" else range(0)
        ids = [cutter.mask, *cutter.slash, *(text.ids[place] for place in inside), *cutter.star]
        begin = [first] * (1 + len(cutter.slash))
        positions = [*begin, *inside, *[stop - 1] * len(cutter.star)]
        if now is None or (now.spans and len(now) + len(ids) > now.text + MOST):
            now = Laid(list(text.ids), list(range(len(text.ids))), text.entities, [], [], len(text.ids))
            laid.append(now)
        start = len(now.ids)
        now.ids.extend(ids)
        now.positions.extend(positions)
        now.spans.append(span)
        now.masks.append(start)
        # Where the span itself is in the block, the one in the text is out of sight, as it is in the paper's input.
        now.blocks.append(Block(start, start + len(ids), (first, stop) if block == "copy" else (0, 0)))
    return laid


def sight(laid: Laid, size: int) -> Tensor:
    """Tell which pieces (rows) see which (columns), shape (size, size); padding sees the text and is seen by none."""
    sees = torch.zeros((size, size), dtype=torch.bool)
    sees[:, : laid.text] = True
    for block in laid.blocks:
        sees[block.start : block.stop, block.start : block.stop] = True
        sees[block.start : block.stop, block.hidden[0] : block.hidden[1]] = False
    return sees


def check(encoder: Encoder) -> None:
    """Refuse encoders in which a block cannot have the position of its span."""
    if not encoder.only_absolute_positions:
        raise EbertError(
            f"{encoder.name} ({type(encoder.module).__name__}) does not go by absolute positions alone, so that spans "
            "cannot share the position of their text: the strategy packed does not work with it; use the strategy "
            "paper, or an encoder like BERT, RoBERTa, DistilBERT, ELECTRA or ALBERT"
        )
