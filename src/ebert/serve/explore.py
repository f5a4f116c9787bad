"""What a store knows: entities by name, suggestions, neighbours, a map, additions."""

from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from ebert.errors import EbertError
from ebert.model.check import check_entity
from ebert.serve.schemas import Problem
from ebert.text import letters, titles
from ebert.text.passage import Passage
from ebert.vectors.entity import Entity, Neighbour
from ebert.vectors.nearest import nearest
from ebert.vectors.store import Vectors

if TYPE_CHECKING:
    from ebert.serve.work import Loaded

ALIASES = 50  # other names of an entity that are shown
_TINY = 1e-12


class Explorer:
    """Answers requests that need no encoder, only vectors and names."""

    def __init__(self, loaded: "Loaded", *, most_added: int) -> None:
        self._loaded, self._most_added = loaded, most_added
        self._taken = 0  # additions so far

    @property
    def _vectors(self) -> Vectors:
        return self._loaded.vectors

    def prepare(self) -> None:
        """Do one-time work now, so that the first client does not have to wait for it."""
        self._vectors.autocomplete.prepare()
        _ = self._pieces

    def suggest(self, typed: str, count: int) -> dict[str, Any]:
        """Suggest entities to somebody who is typing."""
        return {"entities": [_short(entity) for entity in self._vectors.complete(typed, count)]}

    def entity(self, name: str) -> dict[str, Any]:
        """Return what is known of an entity."""
        return self._described(self._find(name))

    def near(self, name: str, kind: Literal["entity", "word"], count: int) -> dict[str, Any]:
        """Return the nearest words and entities to an entity or a word."""
        if kind == "word":
            found = self._vectors.nearest(name, top=count, kind="both", word=True)
        else:
            name = self._find(name).title
            found = self._vectors.nearest(name, top=count, kind="both")
        return {
            "name": name,
            "neighbours": [{"name": n.name, "kind": n.kind, "similarity": n.similarity} for n in found],
        }

    def explore(self, name: str, count: int) -> dict[str, Any]:
        """Return the neighbourhood of an entity: entities, words, wordpieces, and a map of it."""
        entity = self._find(name)
        entities = self._vectors.nearest(entity.title, top=count, kind="entities")
        words = self._vectors.nearest(entity.title, top=count, kind="words")
        return {
            "entity": self._described(entity),
            "entities": [{"name": one.name, "similarity": one.similarity} for one in entities],
            "words": [{"name": one.name, "similarity": one.similarity} for one in words],
            "wordpieces": self._wordpieces(entity, count),
            "map": self._map(entity, [*entities, *words]),
        }

    def check(self, name: str) -> dict[str, Any]:
        """Return what the model says of an entity on a few sentences, with its vector and without."""
        title = self._find(name).title
        answers = [
            {"template": one.template, "before": [*map(asdict, one.before)], "after": [*map(asdict, one.after)]}
            for one in check_entity(self._loaded.model, title)
        ]
        return {"name": title, "answers": answers}

    def add(self, title: str, description: str, aliases: list[str], *, replace: bool) -> dict[str, Any]:
        """Add an entity from its description to every store of the service.

        If that failed when some of them had it already, the same addition again completes it.
        """
        if self._taken >= self._most_added:
            raise Problem(
                422,
                f"this service has reached its limit of {self._most_added:,} added entities; restart it to add more",
            )
        title = titles.clean(title)
        stores = self._loaded.stores  # all that can be wrong is found before anything is written
        vectors = [store.imagine(description) for store in stores]
        known = [one if (one := store.find(title)) and one.title == title else None for store in stores]
        begun = None in known and all(  # an addition that some stores have, and not all
            one is None or (one.added and np.allclose(store.take([one])[0], vector))
            for store, one, vector in zip(stores, known, vectors, strict=True)
        )
        if any(known) and not replace and not begun:
            why = f'there is an entity {title!r} already; choose another title, or send "replace": true'
            raise Problem(409, why)
        for store, one, vector in zip(stores, known, vectors, strict=True):
            try:
                row = {"title": title, "vector": vector, "aliases": aliases}
                report = store.add_many([row], replace=replace or one is not None)
            except OSError as error:  # a full disk, or a store that must not be written
                why = f"{title[:200]!r} was not added: {error}; when that is mended, send it again"
                raise Problem(409, why) from None
            if report.bad:
                raise EbertError(f"{title[:200]!r} was not added: {report.bad[0].reason}")
        self._taken += 1
        words = dict.fromkeys(self._vectors.words_of(description))
        used = [word for word in words if self._vectors.find_word(word) is not None]
        return {"entity": self._described(self._find(title)), "words_used": used}

    def _find(self, name: str) -> Entity:
        found = self._vectors.find(name)
        if found is None:
            like = self._vectors.suggest(name[:200], 5)
            close = ", ".join(f"{title!r}{letters.remark(title)}" for title in like)
            hint = f"did you mean {close}?" if close else "no title looks like it"
            raise Problem(404, f"there is no entity {name[:200]!r} here; {hint}", suggestions=like)
        return found

    def _described(self, entity: Entity) -> dict[str, Any]:
        return {**_short(entity), "wikidata": entity.qid, "aliases": self._vectors.aliases(entity, ALIASES)}

    @cached_property
    def _pieces(self) -> tuple[NDArray[np.float32], list[str]]:
        """The wordpieces that are words of the store with more than one letter, and their vectors.

        Others (single letters of scripts that the encoder hardly ever saw) lie near the middle of all wordpieces,
        and so near everything.
        """
        model = self._loaded.model
        words = {w: i for w, i in model.vocabulary.words_in(self._vectors.find_word).items() if len(w) > 1}
        weight = model.encoder.get_input_embeddings().weight
        assert isinstance(weight, torch.Tensor)
        table = weight.detach()[list(words.values())].float().cpu().numpy()
        return table, list(words)

    def _wordpieces(self, entity: Entity, count: int) -> list[dict[str, Any]]:
        """Return the wordpieces nearest to what the encoder sees of an entity, seen from the middle of them all."""
        table, names = self._pieces
        middle = table.mean(axis=0)
        projected = self._loaded.model.project([entity]).numpy().astype(np.float32)  # (1, width)
        rows, scores = nearest(table - middle, projected - middle, count)
        pairs = zip(rows[0].tolist(), scores[0].tolist(), strict=True)
        return [{"token": names[row], "similarity": score} for row, score in pairs]

    def _map(self, entity: Entity, near: list[Neighbour]) -> list[dict[str, Any]]:
        names = [("self", entity.title), *((one.kind, one.name) for one in near)]
        vectors = np.stack([
            self._vectors.word_vector(name) if kind == "word" else self._vectors[name] for kind, name in names
        ])  # fmt: skip
        places = flat(vectors)
        return [
            {"name": name, "kind": kind, "x": float(x), "y": float(y)}
            for (kind, name), (x, y) in zip(names, places, strict=True)
        ]


def flat(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Lay directions out in a plane by their two main components, from -1 to 1."""
    units = vectors.astype(np.float64)
    units /= np.maximum(np.linalg.norm(units, axis=1, keepdims=True), _TINY)
    centred = units - units.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    places = np.zeros((len(units), 2))
    kept = min(2, len(sizes))
    places[:, :kept] = left[:, :kept] * sizes[:kept]
    return places / max(np.abs(places).max(), _TINY)


def _short(entity: Entity) -> dict[str, Any]:
    return {"title": entity.title, "count": entity.count, "added": entity.added, "oddity": entity.oddity}


NAMES = "Names that mislead"
SENSES = "One name, several things"
PAPER = "Actors of the paper"

LANGUAGE = "The native language of [[{}]] is [MASK]."

UNKNOWN = "This model does not know the entity, so all is guessed from the name: teach it, and ask again."

# Those of the first two groups are known to the starter model; a model of all of Wikipedia knows the others too.
EXAMPLES = [
    {"group": group, "text": text, "note": note}
    for group, text, note in (
        (NAMES, LANGUAGE.format("Natalia Lafourcade"), "A singer from Mexico whose surname looks French."),
        (NAMES, LANGUAGE.format("Wim Wenders"), "A German film director with a name that could be Dutch."),
        (NAMES, LANGUAGE.format("Isabelle Adjani"), "A French actress; her surname is Algerian."),
        (NAMES, LANGUAGE.format("Theodor Adorno"), "A philosopher from Frankfurt; Adorno was the name of his mother."),
        (NAMES, LANGUAGE.format("Stanley Kubrick"), "A director from New York with a surname from eastern Europe."),
        (NAMES, LANGUAGE.format("Hector Berlioz"), "A French composer. Hector is a common name in Spanish too."),
        (NAMES, LANGUAGE.format("Jean Marais"), "A French actor with a French name: here guessing works."),
        (SENSES, "[[Birmingham, Alabama|Birmingham]] is a city in [MASK].", "Not the one in England."),
        (SENSES, "[[Jaguar Cars|Jaguar]] is a [MASK].", "The maker of cars."),
        (SENSES, "[[Jaguar]] is a [MASK].", "The cat."),
        (SENSES, "[[Genesis (band)|Genesis]] is a [MASK].", "The band, not the book."),
        (SENSES, "[[Amazon River|Amazon]] is a [MASK].", "The river, not the company."),
        (PAPER, LANGUAGE.format("Daniel Ceccaldi"), "A French actor with a surname that sounds Italian."),
        (PAPER, LANGUAGE.format("Orane Demazis"), "A French actress, born in Algeria."),
        (PAPER, LANGUAGE.format("Sylvia Lopez"), "A French actress with a Spanish surname."),
        (PAPER, LANGUAGE.format("Annick Alane"), "A French actress."),
    )
]


def suited(vectors: Vectors) -> list[dict[str, Any]]:
    """Return the examples whose entities a store knows, and those of the paper in any case: they show the guessing."""
    found = []
    for one in EXAMPLES:
        if all(mention.entity in vectors for mention in Passage.parse(one["text"]).mentions):
            found.append({**one, "known": True})
        elif one["group"] == PAPER:
            found.append({**one, "note": f"{one['note']} {UNKNOWN}", "known": False})
    return found
