"""A web application with users of its own, and two agents below /agents that its users may talk to.

Run it:      SECRET=... PASSWORD=... OPENAI_API_KEY=... uvicorn --app-dir examples/agents mounted_agents:application
Log in:      curl -s http://127.0.0.1:8000/login --json '{"user": "ann", "password": "..."}' > token
Talk to it:  isthmus connect http://127.0.0.1:8000/agents/pydantic --token-file token, or any A2A client
"""

import contextlib
import hashlib
import hmac
import os
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

from starlette.applications import Starlette
from starlette.authentication import AuthCredentials, AuthenticationBackend, SimpleUser
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from isthmus.a2a import HostedApplication, Hosting, asgi_application
from isthmus.a2a.server.users.auth import RequestHead
from isthmus.agent.hosted import AgentPort
from langgraph_agent import HOSTING as TITLES
from langgraph_agent import agent as title_agent
from pydantic_ai_agent import HOSTING as NOTES
from pydantic_ai_agent import agent as notes_agent

SECRET, PASSWORD = os.environ["SECRET"].encode(), os.environ["PASSWORD"]
USERS = ("ann", "bob")
DATA = Path(os.environ.get("DATA", "data")).absolute()


def session_of(user: str) -> str:
    """Return the token that a user gets at the login; it is not stored anywhere, and stays valid after a restart."""
    return f"{user}.{hmac.new(SECRET, user.encode(), hashlib.sha256).hexdigest()}"


class Sessions(AuthenticationBackend):
    """Authentication of the application's users: by a cookie in browsers, by a bearer token in programs."""

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, SimpleUser] | None:
        """Return the user of a request; None for anybody else."""
        bearer = conn.headers.get("authorization", "").removeprefix("Bearer ")
        session = conn.cookies.get("session", bearer)
        user = session.partition(".")[0]
        is_known = user in USERS and hmac.compare_digest(session.encode(), session_of(user).encode())
        return (AuthCredentials(), SimpleUser(user)) if is_known else None


async def login(request: Request) -> PlainTextResponse:
    """Answer a user's name and password with a token, also as a cookie."""
    given = await request.json()
    if given["user"] not in USERS or not hmac.compare_digest(given["password"].encode(), PASSWORD.encode()):
        return PlainTextResponse("wrong user or password", 403)
    session = session_of(given["user"])
    answer = PlainTextResponse(session)
    answer.set_cookie("session", session, httponly=True, samesite="strict")
    return answer


async def home(request: Request) -> PlainTextResponse:
    """Greet the user."""
    return PlainTextResponse(f"Hello, {request.user.display_name or 'stranger'}")


async def authenticate(head: RequestHead) -> str | None:
    """Return the name of the user who sends a request to an agent; None to refuse it."""
    user = head.scope["user"]
    return user.username if user.is_authenticated else None


IN_CARDS = {"session": {"type": "http", "scheme": "bearer"}}


def part_of_this(agent: AgentPort, hosting: Hosting, folder: Path) -> HostedApplication:
    """Return an agent for this application's users, which keeps everything in ``folder``."""
    own = replace(hosting, folder=folder, workspace=folder, authenticate=authenticate, security_schemes=IN_CARDS)
    folder.mkdir(parents=True, exist_ok=True)
    return asgi_application(agent, own)


titles = part_of_this(title_agent, TITLES, DATA / "titles")
notes = part_of_this(notes_agent, NOTES, DATA / "notes")


@contextlib.asynccontextmanager
async def lifespan(_: Starlette) -> AsyncGenerator[None]:
    """Run the agents as long as the application."""
    async with titles, notes:  # tasks that were interrupted by the end of the process continue now
        yield


application = Starlette(
    routes=[
        Route("/", home),
        Route("/login", login, methods=["POST"]),
        Mount("/agents/graph", titles),
        Mount("/agents/pydantic", notes),
    ],
    middleware=[Middleware(AuthenticationMiddleware, backend=Sessions())],
    lifespan=lifespan,
)
