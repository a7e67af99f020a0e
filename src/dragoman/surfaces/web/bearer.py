"""Who asks: a bearer token, found by its hash, bound to one workspace and to what it allows.

What belongs to another workspace is answered as if it did not exist, before any right is looked at.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from dragoman.kernel.errors import CallerError, StoreError
from dragoman.kernel.identity import sha256
from dragoman.kernel.limits import TOKEN_CHARS_MAX
from dragoman.model.identities import Identity
from dragoman.model.scopes import Workspace
from dragoman.store.acts import access, readiness
from dragoman.wiring.services import Services

_scheme = HTTPBearer(
    auto_error=False, scheme_name="token", description="A token made by `dragoman tokens create`."
)


def services_of(request: Request) -> Services:
    """The parts of the system that this app was built over."""
    services: Services = request.app.state.services
    return services


TheServices = Annotated[Services, Depends(services_of)]


async def current_schema(request: Request, services: TheServices) -> None:
    """Lets a request through once the database was seen to have this program's schema; else 503."""
    state = request.app.state
    if not getattr(state, "schema_is_current", False):
        state.schema_is_current = await services.database.read(readiness.schema_is_current)
    if not state.schema_is_current:
        raise StoreError("the database's schema is not this program's", "schema_unavailable")


async def identify(
    services: TheServices,
    _schema: Annotated[None, Depends(current_schema)],
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_scheme)],
) -> Identity:
    """The bearer of the request's token. Raises `CallerError` unauthorized."""
    token = credentials.credentials if credentials else ""
    if not token or len(token) > TOKEN_CHARS_MAX:
        raise CallerError("a bearer token is missing", "unauthorized", place="header.Authorization")
    identity = await services.database.read(access.find_token, sha256(token))
    if identity is None:
        raise CallerError("this token is not in force", "unauthorized", place="header.Authorization")
    return identity


async def identify_if_any(
    services: TheServices,
    schema: Annotated[None, Depends(current_schema)],
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_scheme)],
) -> Identity | None:
    """The bearer of the request's token, None where it has none. Raises `CallerError` unauthorized."""
    return None if credentials is None else await identify(services, schema, credentials)


class Allowed:
    """A dependency: the request's bearer, of the workspace in the path if one is there, with a capability."""

    def __init__(self, capability: str = "") -> None:
        self._capability = capability

    async def __call__(self, request: Request, identity: Annotated[Identity, Depends(identify)]) -> Identity:
        """The bearer. Raises `CallerError` not_found for another workspace, else forbidden."""
        if request.path_params.get("workspace", identity.workspace) != identity.workspace:
            raise CallerError("no such workspace, or not yours", "not_found", place="path.workspace")
        require(identity, self._capability)
        return identity


def require(identity: Identity, capability: str) -> None:
    """Raise `CallerError` forbidden unless the token has the capability; '' asks for none."""
    if capability and not identity.may(capability):
        raise CallerError(f"this token has not the capability {capability}", "forbidden", place=capability)


async def see_manifest(services: Services, identity: Identity, manifest_id: str) -> None:
    """Raise `CallerError` not_found unless the manifest is there and its reader may see it."""
    await services.database.read(
        access.readable_manifest,
        Workspace(identity.workspace),
        known_id(manifest_id),
        identity.actor,
        identity.may("manifests:read_all"),
    )


def known_id(text: str) -> str:
    """An id as it stands in a path. Raises `CallerError` not_found for what cannot be one of ours."""
    if len(text) != 36 or not text.isascii() or not text.isprintable():
        raise CallerError("nothing has this id", "not_found", place="path")
    return text
