"""`ebert_linker`, a pipe for spaCy that links entities. This is not spaCy itself, which is the package ``spacy``. spaCy
finds the pipe by an entry point, so no import is needed for ``nlp.add_pipe("ebert_linker", config=...)``.
"""

from ebert.errors import EbertError

try:
    import spacy as _  # noqa: F401
except ModuleNotFoundError:
    raise EbertError("the pipe ebert_linker needs spaCy: pip install 'ebert[spacy]'") from None

from ebert.spacy.annotating import EXTENSIONS
from ebert.spacy.component import EbertLinker, PipeOptions

__all__ = ["EXTENSIONS", "EbertLinker", "PipeOptions"]
