"""The compiler for the loops that Python is too slow for. Numba is an extra, which only building a corpus needs."""

from ebert.errors import EbertError

try:
    import numba
except ModuleNotFoundError:
    raise EbertError("building a corpus needs numba: pip install 'ebert[train]'") from None

# Compiled once and kept on disk; other threads run meanwhile.
jit = numba.njit(nogil=True, cache=True)
