"""The HTTP interface: endpoints, thin; OpenAPI with examples."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.resources.abc import Traversable
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from ebert import __version__
from ebert.serve import shapes
from ebert.serve.encoding import encode
from ebert.serve.guard import Guard
from ebert.serve.page_files import POLICY, content_type, page_files
from ebert.serve.problem import Problem
from ebert.serve.service import MOMENT, Service
from ebert.text import Mention

TURTLE = ("text/turtle", "application/x-turtle")  # the second is what GERBIL says
BEARER = HTTPBearer(scheme_name="token", auto_error=False)  # for the schema; `Guard` is who looks at it
CHANGING = frozenset({("POST", "/api/entities")})

Count = Annotated[int, Query(ge=1, description="How many at most.")]
Name = Annotated[str, Query(min_length=1, description="A title, a redirect, a URL of Wikipedia or a Wikidata id.")]


class Json(JSONResponse):
    """An answer in JSON."""

    def render(self, content: Any) -> bytes:
        """Write it, unless that was done already."""
        return content if isinstance(content, bytes) else encode(content)


def make_app(service: Service, *, begin: Callable[[], None] | None = None) -> Guard:
    """Make the application of a service. `begin` is called right before it listens, and should not wait."""
    api = make_api(service, begin=begin)
    endpoints = frozenset(path for route in api.routes if (path := getattr(route, "path", None)))
    return Guard(
        api, options=service.options, metrics=service.metrics, changing=CHANGING, json=endpoints - {"/nif"},
        files=frozenset(page_files()), endpoints=endpoints,
    )  # fmt: skip


def make_api(service: Service, *, begin: Callable[[], None] | None = None) -> FastAPI:
    """Make the endpoints of a service, which nothing guards yet."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if begin is not None:
            begin()
        yield
        service.stop()

    app = FastAPI(
        title="ebert", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None,
        description="Fill masks with entity knowledge, link entities, look at vectors, add entities.",
        default_response_class=Json, redirect_slashes=False,
    )  # fmt: skip
    _errors(app)
    _about(app, service)
    _model(app, service)
    _nif(app, service)
    _entities(app, service)
    _page(app)
    return app


def _errors(app: FastAPI) -> None:
    """Say everything that goes wrong in words."""

    @app.exception_handler(Problem)
    async def problem(_: Request, error: Problem) -> Response:
        return Json({"error": error.error}, error.status, error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        found = error.errors()
        if found and found[0]["type"] == "json_invalid":
            why = found[0].get("ctx", {}).get("error", "it cannot be read")
            return Json({"error": f"the request is not JSON ({why}, at character {found[0]['loc'][-1]})"}, 400)
        return Json({"error": "; ".join(map(_sentence, found[:5]))}, 422)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        known = {
            404: f"there is nothing at {request.url.path[:100]!r}; /openapi.json lists what there is",
            405: f"{request.method} is not possible at {request.url.path[:100]!r}",
            400: "the body cannot be read: it must be JSON in UTF-8",
        }
        return Json({"error": known.get(error.status_code, str(error.detail))}, error.status_code, error.headers)

    @app.exception_handler(Exception)
    async def failure(_: Request, error: Exception) -> Response:
        return Json({"error": f"the service failed ({type(error).__name__}); its log says where"}, 500)


def _sentence(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"][1:])
    return f"{where or error['loc'][0]}: {error['msg']}"


def _about(app: FastAPI, service: Service) -> None:
    @app.get("/health", tags=["about"], response_model=shapes.Health)
    async def health() -> Response:
        """Tell whether the process lives."""
        return Json(encode({"status": "ok"}, shapes.Health))

    @app.get("/ready", tags=["about"], response_model=shapes.Ready, responses={503: {"model": shapes.Ready}})
    async def ready() -> Response:
        """Tell whether requests are answered: the model is loaded, and the service not about to end."""
        why = service.why_not_ready
        if why is None:
            return Json(encode({"ready": True, "why": None}, shapes.Ready))
        return Json(
            encode({"ready": False, "why": why}, shapes.Ready), 503, Problem(503, why, retry_after=MOMENT).headers
        )

    @app.get("/metrics", tags=["about"], response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics() -> Response:
        """Give counts for Prometheus."""
        return Response(service.metrics.text(), media_type=service.metrics.content_type)

    @app.get("/api/model", tags=["about"], response_model=shapes.ModelInfo, responses=shapes.errors(401, 503))
    async def model() -> Response:
        """Describe the model, the linker and the limits."""
        return Json(await service.info())


def _model(app: FastAPI, service: Service) -> None:
    errors = shapes.errors(400, 401, 403, 408, 413, 422, 503, 504)

    @app.post("/api/fill", tags=["model"], response_model=shapes.FillAnswer, responses=errors)
    async def fill(asked: shapes.FillRequest) -> Response:
        """Fill the masks of a text, in all modes side by side."""
        mentions = None
        if asked.mentions is not None:
            mentions = [Mention(one.start, one.end, one.entity) for one in asked.mentions]
        return Json(
            await service.fill(
                asked.text, modes=asked.modes, top=asked.top, candidates=asked.candidates, mentions=mentions
            )
        )

    @app.post("/api/link", tags=["model"], response_model=shapes.LinkAnswer, responses={**errors, **shapes.errors(404)})
    async def link(asked: shapes.LinkRequest) -> Response:
        """Find the entities of a text and link them."""
        return Json(await service.link(asked.text, threshold=asked.threshold, rounds=asked.rounds, trace=asked.trace))


def _nif(app: FastAPI, service: Service) -> None:
    @app.post(
        "/nif", tags=["model"], response_class=Response,
        responses={
            200: {"content": {kind: {"schema": {"type": "string"}} for kind in TURTLE}, "description": "NIF."},
            **shapes.errors(400, 401, 403, 404, 408, 413, 422, 503, 504),
        },
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {kind: {"schema": {"type": "string"}, "example": shapes.NIF} for kind in TURTLE},
            }
        },
    )  # fmt: skip
    async def nif(request: Request) -> Response:
        """Link texts in NIF, as GERBIL sends them: all that they name, or the mentions that are given."""
        try:
            text = (await request.body()).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise Problem(400, f"the request is not UTF-8 ({error.reason} at byte {error.start})") from None
        kind = TURTLE[1] if TURTLE[1] in request.headers.get("accept", "") else TURTLE[0]
        return Response(await service.nif(text), media_type=f"{kind}; charset=utf-8")


def _entities(app: FastAPI, service: Service) -> None:
    looking = shapes.errors(401, 404, 413, 422, 503, 504)

    @app.get("/api/entities", tags=["entities"], response_model=shapes.Suggestions, responses=looking)
    async def suggest(q: Annotated[str, Query(description="What was typed so far.")], count: Count = 8) -> Response:
        """Suggest entities while somebody types."""
        return Json(await service.suggest(q, count))

    @app.get("/api/entity", tags=["entities"], response_model=shapes.Entity, responses=looking)
    async def entity(name: Name) -> Response:
        """Look an entity up."""
        return Json(await service.entity(name))

    @app.get("/api/nearest", tags=["entities"], response_model=shapes.Neighbours, responses=looking)
    async def near(name: Name, kind: Literal["entity", "word"] = "entity", count: Count = 10) -> Response:
        """Give the words and entities nearest to an entity or a word."""
        return Json(await service.near(name, kind, count))

    @app.get("/api/explore", tags=["entities"], response_model=shapes.Neighbourhood, responses=looking)
    async def explore(name: Name, count: Count = 12) -> Response:
        """Give the neighbourhood of an entity, with a map."""
        return Json(await service.explore(name, count))

    @app.post(
        "/api/entities", tags=["entities"], status_code=201, dependencies=[Security(BEARER)],
        response_model=shapes.Added, responses=shapes.errors(400, 401, 403, 408, 409, 413, 422, 503, 504),
    )  # fmt: skip
    async def add(asked: shapes.NewEntity) -> Response:
        """Add an entity from its description. Needs the token."""
        return Json(
            await service.add(asked.title, asked.description, asked.aliases, replace=asked.replace), status_code=201
        )


def _page(app: FastAPI) -> None:
    for path, file in page_files().items():
        app.add_api_route(path, _file(path, file), include_in_schema=False)


def _file(path: str, file: Traversable) -> Callable[[], Awaitable[Response]]:
    """Give what answers with a file. It takes no arguments: those would be fields of the query, for anybody to set."""
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}

    async def serve() -> Response:
        return Response(file.read_bytes(), headers=headers, media_type=content_type(path))

    return serve
