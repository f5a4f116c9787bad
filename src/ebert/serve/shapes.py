"""What requests and answers look like: the OpenAPI schema is made of these."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ebert.text.titles import is_text

EXAMPLE = "The native language of [[Jean Marais]] is [MASK]."
NEWS = "Adams and Platt are both injured and will miss England's opening World Cup qualifier."

NIF = """@prefix nif: <http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
<http://example.org/1#char=0,22> a nif:Context ;
  nif:beginIndex "0"^^xsd:nonNegativeInteger ; nif:endIndex "22"^^xsd:nonNegativeInteger ;
  nif:isString "Berlin is in Germany ." .
"""

Mode = Literal["bert", "concat", "replace"]


def _sound(text: str) -> str:
    """Refuse half a surrogate pair, which JSON can spell and which is no character."""
    if not is_text(text):
        raise ValueError("it has half a surrogate pair, which is no character")
    return text


Text = Annotated[str, AfterValidator(_sound)]


class Asked(BaseModel):
    """What a client sends: a field that is not known here is a mistake of whoever sent it."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Reply(BaseModel):
    """What a client gets: nothing but what is declared here, as `encode` sees to."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Error(Reply):
    """What went wrong, in a sentence."""

    error: Annotated[str, Field(examples=["the text has no mask; write [MASK] where the answer goes: 'Paris'"])]


class GivenMention(Asked):
    """Where in a text an entity is named, by characters."""

    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=1)]
    entity: Annotated[Text, Field(min_length=1)]


class FillRequest(Asked):
    """A text with masks."""

    text: Annotated[Text, Field(min_length=1, description="With [[Title]] or [[Title|words]], or plain with mentions.")]
    modes: Annotated[list[Mode] | None, Field(description="All that the model has, if not given.")] = None
    top: Annotated[int, Field(ge=1, description="Answers for each mask.")] = 5
    candidates: Annotated[list[Text] | None, Field(description="Words to choose from, each one wordpiece.")] = None
    mentions: Annotated[list[GivenMention] | None, Field(description="By offsets; then the text has no markup.")] = None

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"text": EXAMPLE},
                {"text": EXAMPLE, "modes": ["bert", "concat"], "top": 3, "candidates": ["French", "English"]},
                {
                    "text": "The native language of Jean Marais is [MASK].",
                    "mentions": [{"start": 23, "end": 34, "entity": "Jean Marais"}],
                },
            ]
        }
    )


class Mention(Reply):
    """A span of the text and the entity that it was said to name."""

    start: int
    end: int
    text: str
    entity: str


class Answer(Reply):
    """A wordpiece for a mask."""

    token: str
    probability: float


class FillResult(Reply):
    """What one mode answers: for each mask the best wordpieces."""

    mode: Mode
    pieces: Annotated[list[str], Field(description="What the encoder saw.")]
    entities: Annotated[list[int], Field(description="Which of the pieces are entities.")]
    masks: list[list[Answer]]


class FillAnswer(Reply):
    """A text and what every mode puts where its masks are."""

    text: str
    mentions: list[Mention]
    missing: Annotated[list[str], Field(description="Titles without a vector, which were fed as words only.")]
    results: list[FillResult]


class LinkRequest(Asked):
    """A text to find entities in."""

    text: Annotated[Text, Field(min_length=1)]
    threshold: Annotated[float | None, Field(ge=0, le=1, description="Leave out what is less probable.")] = None
    rounds: Annotated[int | None, Field(ge=1, description="Rounds of refinement; 1 is none.")] = None
    trace: Annotated[bool, Field(description="Also give what was linked after each round.")] = False

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": NEWS}, {"text": NEWS, "trace": True}]})


class Candidate(Reply):
    """An entity that a span may mean."""

    entity: str
    prior: float
    score: float
    probability: float


class LinkedMention(Reply):
    """A span of the text that names an entity."""

    start: int
    end: int
    text: str
    entity: str
    url: str | None
    probability: float
    null_probability: float
    candidates: list[Candidate]


class LinkAnswer(Reply):
    """A text and the entities in it."""

    text: str
    mentions: list[LinkedMention]
    rounds: Annotated[list[list[LinkedMention]] | None, Field(description="With trace: after each round.")] = None


class Suggestion(Reply):
    """An entity, in short."""

    title: str
    count: Annotated[int | None, Field(description="How often it was linked in the text the vectors come from.")]
    added: bool
    oddity: Annotated[str | None, Field(description="A warning, if letters of the title look like others.")]


class Suggestions(Reply):
    """Entities that somebody who types may mean."""

    entities: list[Suggestion]


class Entity(Suggestion):
    """An entity."""

    wikidata: str | None
    aliases: Annotated[list[str], Field(description="Other names that find it, some of them if there are many.")]


class Neighbour(Reply):
    """A word or an entity, and how near it is by cosine."""

    name: str
    kind: Literal["entity", "word"]
    similarity: float


class Neighbours(Reply):
    """What is near to something."""

    name: str
    neighbours: list[Neighbour]


class Near(Reply):
    """A name, and how near it is by cosine."""

    name: str
    similarity: float


class NearPiece(Reply):
    """A wordpiece, and how near it is by cosine."""

    token: str
    similarity: float


class Place(Reply):
    """A place on the map, from -1 to 1."""

    name: str
    kind: Literal["self", "entity", "word"]
    x: float
    y: float


class Neighbourhood(Reply):
    """All that is near to an entity."""

    entity: Entity
    entities: list[Near]
    words: list[Near]
    wordpieces: list[NearPiece]
    map: list[Place]


class NewEntity(Asked):
    """An entity to add, described in a sentence or two."""

    title: Annotated[Text, Field(min_length=1, max_length=500)]
    description: Annotated[Text, Field(min_length=1)]
    aliases: Annotated[list[Annotated[Text, Field(max_length=500)]], Field(max_length=100)] = []
    replace: Annotated[bool, Field(description="Whether it may take the place of an entity of this title.")] = False

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "title": "Zorblax Inc.",
                    "description": "Zorblax Inc. is a Danish maker of wind turbines, founded in Aarhus in 1987.",
                    "aliases": ["Zorblax"],
                }
            ]
        }
    )


class Added(Reply):
    """An entity that was added."""

    entity: Entity
    words_used: Annotated[list[str], Field(description="Words of the description that have vectors.")]


class LinkerInfo(Reply):
    """The linker of the service."""

    name: str
    rounds: int
    strategy: str


class LimitsInfo(Reply):
    """How much a request may ask for."""

    characters: int
    body: int
    top: int


class Example(Reply):
    """A text to try, with its entities as markup."""

    text: str
    note: str
    group: str


class ModelInfo(Reply):
    """The model of the service."""

    name: str
    encoder: str
    mask: str
    modes: list[Mode]
    entities: int
    words: int
    dimension: int
    linker: LinkerInfo | None
    keeps: Annotated[bool, Field(description="Whether added entities stay when the service ends.")]
    limits: LimitsInfo
    examples: list[Example]


class Health(Reply):
    """The process lives."""

    status: Literal["ok"]


class Ready(Reply):
    """Whether requests are answered now."""

    ready: bool
    why: Annotated[str | None, Field(description="If not: what it is doing.")] = None


def errors(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Say in the schema which errors an endpoint gives."""
    meanings = {
        400: "The request is not JSON, or not HTTP as it should be.",
        401: "A token is needed: Authorization: Bearer TOKEN.",
        403: "A page of another origin cannot do this.",
        404: "There is nothing of this name.",
        408: "The request came too slowly.",
        409: "There is an entity of this title already, or the store cannot be written.",
        413: "The text or the request is too long.",
        422: "Something in the request is not as it should be.",
        503: "Too many requests wait, or the model is not loaded; try again after Retry-After seconds.",
        504: "The answer took too long.",
    }
    return {code: {"model": Error, "description": meanings[code]} for code in codes}
