"""The HTTP interface: endpoints, errors, and the files of the page; OpenAPI with examples.

A new endpoint is a function here and its schema in `schemas`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from ebert import __version__
from ebert.serve import schemas
from ebert.serve.middleware import GuardMiddleware
from ebert.serve.schemas import Json, Problem, encode
from ebert.serve.service import MOMENT, Service

TURTLE = ("text/turtle", "application/x-turtle")  # the second is what GERBIL says
BEARER = HTTPBearer(scheme_name="token", auto_error=False)  # for the schema; the middleware checks it
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Nothing from elsewhere, nothing inline: a text that somebody pasted can never become a script.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)

Count = Annotated[int, Query(ge=1, description="Maximum number of results.")]
Name = Annotated[str, Query(min_length=1, description="A title, a redirect, a URL of Wikipedia or a Wikidata id.")]


def make_app(service: Service, *, begin: Callable[[], None] | None = None) -> GuardMiddleware:
    """Return the application of a service. `begin` is called right before it listens, and should not wait."""
    api = make_api(service, begin=begin)
    paths = [path for route in api.routes if (path := getattr(route, "path", None))]
    return GuardMiddleware(api, service.options, service.metrics, files=page_files(), paths=paths)


def make_api(service: Service, *, begin: Callable[[], None] | None = None) -> FastAPI:
    """Return the endpoints of a service, without the middleware that guards them."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if begin is not None:
            begin()
        yield
        service.stop()

    app = FastAPI(
        title="ebert",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        description="Fill masks with entity knowledge, link entities, look at vectors, add entities.",
        default_response_class=Json,
        redirect_slashes=False,
    )
    _errors(app)
    _about(app, service)
    _model(app, service)
    _entities(app, service)
    for path, file in page_files().items():
        app.add_api_route(path, _file(file), include_in_schema=False)
    return app


def _errors(app: FastAPI) -> None:
    """Answer everything that goes wrong with a sentence."""

    @app.exception_handler(Problem)
    async def problem(_: Request, error: Problem) -> Response:
        offered = {"suggestions": error.suggestions} if error.suggestions else {}
        return Json({"error": error.error, **offered}, error.status, error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        found = error.errors()
        if found and found[0]["type"] == "json_invalid":
            why = found[0].get("ctx", {}).get("error", "it cannot be read")
            return Json({"error": f"the request is not JSON ({why}, at character {found[0]['loc'][-1]})"}, 400)
        return Json({"error": "; ".join(map(_invalid, found[:5]))}, 422)

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


def _invalid(found: dict[str, Any]) -> str:
    """Return what is wrong with a field of a request."""
    name = ".".join(map(str, found["loc"][1:])) or found["loc"][0]
    if found["type"] in ("string_too_short", "too_short"):
        return f"{name} is empty; at least one character is needed"
    return f"{name} is missing" if found["type"] == "missing" else f"{name}: {found['msg']}"


def _about(app: FastAPI, service: Service) -> None:
    @app.get("/health", tags=["about"], response_model=schemas.Health)
    async def health() -> Response:
        """Return whether the process is alive."""
        return Json(encode({"status": "ok"}, schemas.Health))

    @app.get("/ready", tags=["about"], response_model=schemas.Ready, responses={503: {"model": schemas.Ready}})
    async def ready() -> Response:
        """Return whether requests are answered: the model is loaded and the service is not shutting down."""
        why = service.why_not_ready
        body = encode({"ready": why is None, "why": why}, schemas.Ready)
        return Json(body) if why is None else Json(body, 503, Problem(503, why, retry_after=MOMENT).headers)

    @app.get("/metrics", tags=["about"], response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics() -> Response:
        """Return counts for Prometheus."""
        return Response(service.metrics.text(), media_type=service.metrics.content_type)

    @app.get("/api/model", tags=["about"], response_model=schemas.ServedModel, responses=schemas.errors(401, 503))
    async def model() -> Response:
        """Describe the model, the linker and the limits."""
        return Json(await service.look_up(lambda work: work.describe(service.options.limits), schemas.ServedModel))


def _model(app: FastAPI, service: Service) -> None:
    codes = (400, 401, 403, 408, 413, 422, 503, 504)
    errors, link_errors = schemas.errors(*codes), schemas.errors(404, *codes)

    @app.post("/api/fill", tags=["model"], response_model=schemas.FillAnswer, responses=errors)
    async def fill(asked: schemas.FillRequest) -> Response:
        """Fill the masks of a text, in all modes side by side."""
        return Json(await service.fill(asked))

    @app.post("/api/link", tags=["model"], response_model=schemas.LinkAnswer, responses=link_errors)
    async def link(asked: schemas.LinkRequest) -> Response:
        """Find the entities of a text and link them."""
        return Json(await service.link(asked))

    sent = {kind: {"schema": {"type": "string"}, "example": schemas.NIF} for kind in TURTLE}
    answered = {kind: {"schema": {"type": "string"}} for kind in TURTLE}

    @app.post(
        "/nif",
        tags=["model"],
        response_class=Response,
        responses={200: {"content": answered, "description": "NIF."}, **link_errors},
        openapi_extra={"requestBody": {"required": True, "content": sent}},
    )
    async def nif(request: Request) -> Response:
        """Link texts in NIF, as GERBIL sends them: all that they name, or the mentions that are given."""
        try:
            text = (await request.body()).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise Problem(400, f"the request is not UTF-8 ({error.reason} at byte {error.start})") from None
        kind = TURTLE[1] if TURTLE[1] in request.headers.get("accept", "") else TURTLE[0]
        return Response(await service.nif(text), media_type=f"{kind}; charset=utf-8")


def _entities(app: FastAPI, service: Service) -> None:
    looking = schemas.errors(401, 404, 413, 422, 503, 504)

    @app.get("/api/entities", tags=["entities"], response_model=schemas.Suggestions, responses=looking)
    async def suggest(q: Annotated[str, Query(description="The text typed so far.")], count: Count = 8) -> Response:
        """Suggest entities while somebody types."""
        found = service.look_up(lambda w: w.explorer.suggest(q, count), schemas.Suggestions, text=q, count=count)
        return Json(await found)

    @app.get("/api/entity", tags=["entities"], response_model=schemas.EntityInfo, responses=looking)
    async def entity(name: Name) -> Response:
        """Look up an entity."""
        found = service.look_up(lambda w: w.explorer.entity(name), schemas.EntityInfo, text=name, queue="slow")
        return Json(await found)

    @app.get("/api/nearest", tags=["entities"], response_model=schemas.Neighbours, responses=looking)
    async def near(name: Name, kind: Literal["entity", "word"] = "entity", count: Count = 10) -> Response:
        """Return the words and entities nearest to an entity or a word."""
        found = service.look_up(
            lambda w: w.explorer.near(name, kind, count), schemas.Neighbours, text=name, count=count, queue="slow"
        )
        return Json(await found)

    @app.get("/api/explore", tags=["entities"], response_model=schemas.Neighbourhood, responses=looking)
    async def explore(name: Name, count: Count = 12) -> Response:
        """Return the neighbourhood of an entity, with a map."""
        found = service.look_up(
            lambda w: w.explorer.explore(name, count), schemas.Neighbourhood, text=name, count=count, queue="slow"
        )
        return Json(await found)

    @app.get("/api/check", tags=["entities"], response_model=schemas.CheckedEntity, responses=looking)
    async def check(name: Name) -> Response:
        """Ask the model about an entity on a few sentences, with its vector and without."""
        found = service.look_up(lambda w: w.explorer.check(name), schemas.CheckedEntity, text=name, queue="slow")
        return Json(await found)

    @app.post(
        "/api/entities",
        tags=["entities"],
        status_code=201,
        dependencies=[Security(BEARER)],
        response_model=schemas.AddedEntity,
        responses=schemas.errors(400, 401, 403, 408, 409, 413, 422, 503, 504),
    )
    async def add(asked: schemas.NewEntity) -> Response:
        """Add an entity from its description. Needs the token."""
        found = service.look_up(
            lambda w: w.explorer.add(asked.title, asked.description, asked.aliases, replace=asked.replace),
            schemas.AddedEntity,
            text=asked.description,
            queue="slow",
        )
        return Json(await found, status_code=201)


def page_files() -> dict[str, Traversable]:
    """Return the files of the page by the path that they are served at."""
    folder = files("ebert.serve") / "page"
    found = {f"/{file.name}": file for file in folder.iterdir() if PurePosixPath(file.name).suffix in TYPES}
    return {**found, "/": found["/index.html"]}


def _file(file: Traversable) -> Callable[[], Awaitable[Response]]:
    """Return an endpoint for a file. It takes no arguments: those would be fields of the query, for anybody to set."""
    headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
    kind = TYPES[PurePosixPath(file.name).suffix]

    async def serve() -> Response:
        return Response(file.read_bytes(), headers=headers, media_type=kind)

    return serve
