"""The page: an allow-list of files that come with the package."""

from importlib.resources import files
from importlib.resources.abc import Traversable

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
}
INDEX = "index.html"
# Nothing from elsewhere, nothing inline: a text that somebody pasted can never become a script.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)


def page_files() -> dict[str, Traversable]:
    """Give the files of the page by the path that they are served at."""
    folder = files("ebert.serve") / "page"
    if not folder.is_dir():
        return {}
    found = {f"/{file.name}": file for file in folder.iterdir() if _suffix(file.name) in TYPES}
    if index := found.get(f"/{INDEX}"):
        found["/"] = index
    return found


def content_type(path: str) -> str:
    """Give the type of a file by its name."""
    return TYPES[_suffix(path)] if path != "/" else TYPES[".html"]


def _suffix(name: str) -> str:
    return name[name.rfind(".") :] if "." in name else ""
