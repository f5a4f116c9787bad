"""What requests and answers look like: the OpenAPI schema is made of these."""

import json
import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse

from ebert.model.options import Mode
from ebert.text.titles import is_text

EXAMPLE = "The native language of [[Jean Marais]] is [MASK]."
NEWS = "Adams and Platt are both injured and will miss England's opening World Cup qualifier."

NIF = """@prefix nif: <http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
<http://example.org/1#char=0,22> a nif:Context ;
  nif:beginIndex "0"^^xsd:nonNegativeInteger ; nif:endIndex "22"^^xsd:nonNegativeInteger ;
  nif:isString "Berlin is in Germany ." .
"""


def _sound(text: str) -> str:
    """Refuse half a surrogate pair, which JSON can spell and which is no character."""
    if not is_text(text):
        raise ValueError("it has half a surrogate pair, which is no character")
    return text


Text = Annotated[str, AfterValidator(_sound)]


class RequestBody(BaseModel):
    """What a client sends: a field that is not known here is a mistake of whoever sent it."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ReplyBody(BaseModel):
    """What a client gets: nothing but what is declared here, as `encode` sees to."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Error(ReplyBody):
    """What went wrong, in a sentence."""

    error: Annotated[str, Field(examples=["the text has no mask; write [MASK] where the answer goes: 'Paris'"])]
    suggestions: Annotated[list[str], Field(description="For an unknown name: similar titles.")] = []


class GivenMention(RequestBody):
    """Where in a text an entity is named, by characters."""

    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=1)]
    entity: Annotated[Text, Field(min_length=1)]


class FillRequest(RequestBody):
    """A text with masks."""

    text: Annotated[
        Text, Field(min_length=1, description="With [[Title]] or [[Title|words]], or plain text with mentions.")
    ]
    modes: Annotated[list[Mode] | None, Field(description="If not given: all modes of the model.")] = None
    top: Annotated[int, Field(ge=1, description="Answers for each mask.")] = 5
    candidates: Annotated[list[Text] | None, Field(description="Words to choose from, each one wordpiece.")] = None
    mentions: Annotated[
        list[GivenMention] | None, Field(description="Mentions by offsets; the text then has no markup.")
    ] = None

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


class FilledMention(ReplyBody):
    """A span of the text and the entity that it was said to name."""

    start: int
    end: int
    text: str
    entity: str


class MaskAnswer(ReplyBody):
    """A wordpiece for a mask."""

    token: str
    probability: float


class FillResult(ReplyBody):
    """What one mode answers: for each mask the best wordpieces."""

    mode: Mode
    pieces: Annotated[list[str], Field(description="What the encoder saw.")]
    entities: Annotated[list[int], Field(description="Which of the pieces are entities.")]
    masks: list[list[MaskAnswer]]


class FillAnswer(ReplyBody):
    """A text and what every mode puts where its masks are."""

    text: str
    mentions: list[FilledMention]
    missing: Annotated[list[str], Field(description="Titles without a vector, which were fed as words only.")]
    results: list[FillResult]


class LinkRequest(RequestBody):
    """A text to find entities in."""

    text: Annotated[Text, Field(min_length=1)]
    threshold: Annotated[float | None, Field(ge=0, le=1, description="Leave out mentions that are less probable.")] = (
        None
    )
    rounds: Annotated[int | None, Field(ge=1, description="Rounds of refinement; 1: no refinement.")] = None
    trace: Annotated[bool, Field(description="Also return the links after each round.")] = False

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": NEWS}, {"text": NEWS, "trace": True}]})


class LinkCandidate(ReplyBody):
    """An entity that a span may mean."""

    entity: str
    prior: float
    score: float
    probability: float


class LinkMention(FilledMention):
    """A span of the text that names an entity."""

    wikidata: Annotated[str | None, Field(description="Such as Q9617, if the store knows it.")]
    id: Annotated[str | None, Field(description="Your own id, if the entity was added with one.")]
    url: Annotated[str | None, Field(description="The Wikipedia page, or your own id if it is a URL.")]
    probability: float
    null_probability: Annotated[float, Field(description="Probability of no entity.")]
    candidates: list[LinkCandidate]


class LinkAnswer(ReplyBody):
    """A text and the entities in it."""

    text: str
    mentions: list[LinkMention]
    rounds: Annotated[list[list[LinkMention]] | None, Field(description="With trace: after each round.")] = None


class Suggestion(ReplyBody):
    """An entity, in short."""

    title: str
    count: Annotated[int | None, Field(description="How often it was linked in the text the vectors come from.")]
    added: bool
    oddity: Annotated[str | None, Field(description="A warning, if letters of the title look like others.")]


class Suggestions(ReplyBody):
    """Entities that somebody who types may mean."""

    entities: list[Suggestion]


class EntityInfo(Suggestion):
    """An entity."""

    wikidata: str | None
    aliases: Annotated[list[str], Field(description="Other names that find it; only some if there are many.")]


class NearestName(ReplyBody):
    """A word or an entity, and how near it is by cosine."""

    name: str
    kind: Literal["entity", "word"]
    similarity: float


class Neighbours(ReplyBody):
    """What is near to something."""

    name: str
    neighbours: list[NearestName]


class Near(ReplyBody):
    """A name, and how near it is by cosine."""

    name: str
    similarity: float


class NearPiece(ReplyBody):
    """A wordpiece, and how near it is by cosine."""

    token: str
    similarity: float


class Place(ReplyBody):
    """A place on the map, from -1 to 1."""

    name: str
    kind: Literal["self", "entity", "word"]
    x: float
    y: float


class Neighbourhood(ReplyBody):
    """All that is near to an entity."""

    entity: EntityInfo
    entities: list[Near]
    words: list[Near]
    wordpieces: list[NearPiece]
    map: list[Place]


class NewEntity(RequestBody):
    """An entity to add, described in a sentence or two."""

    title: Annotated[Text, Field(min_length=1, max_length=500)]
    description: Annotated[Text, Field(min_length=1)]
    aliases: Annotated[list[Annotated[Text, Field(max_length=500)]], Field(max_length=100)] = []
    replace: Annotated[bool, Field(description="Whether it may replace an entity with this title.")] = False

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


class AddedEntity(ReplyBody):
    """An entity that was added."""

    entity: EntityInfo
    words_used: Annotated[list[str], Field(description="Words of the description that have vectors.")]


class CheckedTemplate(ReplyBody):
    """What plain BERT says of an entity, and what it says with its vector."""

    template: Annotated[str, Field(description="A sentence, with {} where the name of the entity goes.")]
    before: Annotated[list[MaskAnswer], Field(description="From the name alone (mode bert).")]
    after: Annotated[list[MaskAnswer], Field(description="With the vector beside the name (mode concat).")]


class CheckedEntity(ReplyBody):
    """Whether the vector of an entity says what it should."""

    name: str
    answers: list[CheckedTemplate]


class LinkerInfo(ReplyBody):
    """The linker of the service."""

    name: str
    rounds: int
    strategy: str
    precision: Annotated[str, Field(description="The number type of the encoder: fp32, bf16 or int8.")]


class LimitsInfo(ReplyBody):
    """How much a request may ask for."""

    characters: int
    body: int
    top: int


class ExampleText(ReplyBody):
    """A text to try, with its entities as markup."""

    text: str
    note: str
    group: str
    known: Annotated[bool, Field(description="Whether the model has vectors for its entities.")]


class ServedModel(ReplyBody):
    """The model of the service."""

    name: str
    encoder: str
    mask: str
    modes: list[Mode]
    entities: int
    words: int
    dimension: int
    store: Annotated[str, Field(description="The name of the folder of its vectors, without the path.")]
    linker: LinkerInfo | None
    keeps: Annotated[bool, Field(description="Whether added entities stay after the service stops.")]
    limits: LimitsInfo
    examples: list[ExampleText]


class Health(ReplyBody):
    """The process lives."""

    status: Literal["ok"]


class Ready(ReplyBody):
    """Whether requests are answered now."""

    ready: bool
    why: Annotated[str | None, Field(description="If not ready: the reason.")] = None


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


def encode(value: Any, shape: type[BaseModel] | None = None) -> bytes:
    """Write JSON, if it has the shape that was declared; a `ValidationError` says where it has not.

    Halves of surrogate pairs, which clients can send and UTF-8 cannot hold, become question marks.
    """
    if shape is not None:
        shape.model_validate(value)
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")


class Json(JSONResponse):
    """An answer in JSON, encoded already or not."""

    def render(self, content: Any) -> bytes:
        """Return the bytes of the body."""
        return content if isinstance(content, bytes) else encode(content)


class Problem(Exception):  # noqa: N818 - an answer, not a failure of ours
    """An answer other than the one that was asked for."""

    def __init__(
        self, status: int, error: str, *, suggestions: Sequence[str] = (), retry_after: float | None = None,
        reason: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(error)
        self.status, self.error, self.reason = status, error, reason
        self.suggestions = list(suggestions)
        self.headers: dict[str, str] = {}
        if retry_after is not None:
            self.headers["Retry-After"] = str(max(1, math.ceil(retry_after)))
        if status == 401:
            self.headers["WWW-Authenticate"] = "Bearer"
