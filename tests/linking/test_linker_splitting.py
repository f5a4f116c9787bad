"""Documents in chunks: at the sentence boundary nearest the midpoint, again and again."""

import linking_tiny as tiny
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebert.linking.document import Choice, Document, Span
from ebert.linking.sequences import BETWEEN, EMPTY, sentence_starts, split


def pieces(count):
    """Words of one letter with blanks between."""
    return [(2 * number, 2 * number + 1) for number in range(count)]


def test_a_short_document_is_one_chunk():
    assert split(pieces(10), [8], 10) == [(0, 10)]


def test_the_boundary_nearest_the_midpoint():
    # 12 pieces, sentences begin at pieces 3, 7 and 10; the midpoint is 6, so 7; then 0..7 has its midpoint at 3.5.
    assert split(pieces(12), [6, 14, 20], 5) == [(0, 3), (3, 7), (7, 12)]
    assert split(pieces(12), [6, 14, 20], 7) == [(0, 7), (7, 12)]


def test_of_two_as_near_the_earlier_one():
    assert split(pieces(10), [8, 12], 6) == [(0, 4), (4, 10)]


def test_a_long_sentence_is_split_between_words_and_a_long_word_between_pieces():
    assert split(pieces(9), [], 5) == [(0, 4), (4, 9)]
    word = [(number, number + 1) for number in range(9)]
    assert split(word, [], 5) == [(0, 4), (4, 9)]
    word_and_more = [*word, (10, 11)]
    assert split(word_and_more, [], 9) == [(0, 9), (9, 10)]


@given(st.integers(0, 200), st.lists(st.integers(0, 400)), st.integers(1, 50))
def test_chunks_cover_everything_once_and_are_short(count, boundaries, most):
    runs = split(pieces(count), sorted(boundaries), most)
    assert [n for first, stop in runs for n in range(first, stop)] == list(range(count))
    assert all(stop - first <= most for first, stop in runs)


def test_names_without_a_gap_are_cut_between_words():
    """Where every word goes on with a name, a word is still whole."""
    words = [(start + 2 * (start // 3), start + 2 * (start // 3) + 1) for start in range(27)]  # of three pieces each
    runs = split(words, [], 16, inside=set(range(1, 27)))
    assert runs == [(0, 12), (12, 27)]


def test_where_sentences_begin():
    text = 'He left. "Why?" she said. It rained in the U.S. of old.\nA new line'
    assert [text[start : start + 3] for start in sentence_starts(text)] == ['"Wh', "It ", "A n"]


def test_spans_of_chunks_and_those_that_a_split_cuts():
    text = "Adams and Platt. " * 6
    long = Span(0, len(text.rstrip()), (Choice("England", 1.0),))
    linker = tiny.linker(generator=lambda document: [long, *tiny.spans(document)], chunk=24)
    chunks = linker.chunks([Document("1", text)])
    assert len(chunks) > 1
    found = [linker.tokenizer.convert_ids_to_tokens(list(c.ids))[p.first : p.stop] for c in chunks for p in c.spans]
    assert found == [["Adams"], ["P", "##latt"]] * 6
    assert linker.dropped == {BETWEEN: 1}
    assert all(len(chunk) + 5 <= 24 for chunk in chunks)  # with [CLS], [SEP], [E-MASK], / and *


def test_no_split_inside_a_span():
    """The end of "St." is nearer to the middle, but is in a name."""
    text = "and will miss both\nwill miss both St. Adams are both injured and will miss both"
    spans = [Span(34, 43, (Choice("England", 1.0),))]
    assert text[34:43] == "St. Adams"
    linker = tiny.linker(generator=lambda document: spans, chunk=21)
    (chunk,) = linker.chunks([Document("1", text)])  # the second half: there is nothing to ask about the first
    assert not linker.dropped
    assert (len(chunk), len(chunk.spans)) == (14, 1)


def test_no_split_inside_a_span_between_words():
    """There is no sentence to split at, and the middle is in a name."""
    text = "and will miss both will miss both St. Adams are both injured and will miss both"
    linker = tiny.linker(generator=lambda document: [Span(34, 43, (Choice("England", 1.0),))], chunk=21)
    assert len(linker.chunks([Document("1", text, sentences=(0,))])) == 1
    assert not linker.dropped


def test_given_sentences_go_before_the_rule():
    text = "Adams and. Platt are both injured and will miss both both"
    linker = tiny.linker(chunk=16)

    def chunks(**sentences):
        found = linker.chunks([Document("1", text, **sentences)])
        return [" ".join(linker.tokenizer.convert_ids_to_tokens(list(chunk.ids))) for chunk in found]

    assert chunks() == ["Adams and .", "P ##latt are both injured and will miss both both"]
    assert chunks(sentences=(0, 17)) == ["Adams and . P ##latt", "are both injured and will miss both both"]


def test_a_span_that_the_tokenizer_drops_is_counted():
    text = "Adams \u200b\ufeff and"
    linker = tiny.linker(generator=lambda document: [Span(6, 8, (Choice("England", 1.0),))])
    assert linker.chunks([Document("1", text)]) == []
    assert linker.dropped == {EMPTY: 1}


def test_chunks_need_room():
    with pytest.raises(ValueError, match="chunk is 3; it must be at least 16"):
        tiny.linker(chunk=3)
