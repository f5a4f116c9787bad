"""Reading numbers in text faster than one by one: the part of an import that takes the time."""

import warnings

import numpy as np
from numpy.typing import NDArray

_ZERO, _POINT, _MINUS, _BLANK = (np.uint8(ord(character)) for character in "0.- ")
_DECIMALS = 7  # at most, so that a number without its point is a 32-bit integer


def parse(rows: list[bytes], dimension: int) -> NDArray[np.float32] | None:
    """Give the numbers in rows of text, shape (rows, dimension), or None if there is anything else among them."""
    text = b" ".join(rows)
    values = _fixed(b" " + text + b" ", len(rows) * dimension)
    if values is None and all(len(row.split()) == dimension for row in rows):
        values = _any(text)
    if values is None or len(values) != len(rows) * dimension or not np.isfinite(values).all():
        return None
    return values.reshape(-1, dimension)


def _fixed(text: bytes, count: int) -> NDArray[np.float32] | None:
    """Read numbers that all have the same few decimals and one digit before the point, as Wikipedia2Vec writes them.

    Then every digit has a fixed place before the blank that ends its number, and numpy takes the same digit of all
    numbers at once. The integer without its point, divided, is the same float that strtod gives.
    """
    data = np.frombuffer(text, np.uint8)
    blanks = np.flatnonzero(data == _BLANK)
    if len(blanks) != count + 1:
        return None
    widths = np.diff(blanks) - 1  # of the numbers
    decimals = int(blanks[1]) - 1 - text.find(b".")
    if not 1 <= decimals <= _DECIMALS or widths.min() < decimals + 2 or widths.max() > decimals + 3:
        return None
    position = blanks[1:] - 1  # of the digit looked at
    digits = np.zeros(count, np.int32)
    largest = np.zeros(count, np.uint8)
    for place in range(decimals + 1):
        if place == decimals:
            if (data[position] != _POINT).any():
                return None
            position -= 1
        digit = data[position] - _ZERO  # other characters wrap around to more than 9
        np.maximum(largest, digit, out=largest)
        digits += np.multiply(digit, 10**place, dtype=np.int32)
        position -= 1
    signed = np.flatnonzero(widths == decimals + 3)
    if largest.max() > 9 or (data[position[signed]] != _MINUS).any():
        return None
    values = digits / np.float64(10**decimals)
    values[signed] = -values[signed]
    return values.astype(np.float32)


def _any(text: bytes) -> NDArray[np.float32] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy only warns of what it cannot read
        try:
            return np.fromstring(text.decode("ascii"), dtype=np.float32, sep=" ")
        except (ValueError, DeprecationWarning):
            return None
