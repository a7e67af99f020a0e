"""Who speaks to us over the network: an actor of one workspace, with what a token lets them do."""

from __future__ import annotations

from dataclasses import dataclass

CAPABILITIES = {
    "manifests:write": "ask for translations, retry and cancel one's own",
    "manifests:force": "ask for mode force, which also replaces what people edited",
    "manifests:read_all": "read the manifests of everybody in the workspace",
    "publications:write": "publish and revert",
    "jobs:read": "read the engine's jobs and their texts",
    "jobs:write": "submit, cancel and control the engine's jobs",
    "admin": "all of these, and the outbox",
    "metrics:read": "read /metrics, whose numbers are of all workspaces together: not in `admin`",
}
"""Everything that a token can be allowed, in the order in which it is shown."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The bearer of a valid token."""

    workspace: str
    actor: str
    capabilities: frozenset[str]

    def may(self, capability: str) -> bool:
        """Whether the token allows this; `admin` allows everything that is of its workspace, and writing
        jobs includes reading.
        """
        if capability == "metrics:read":
            return capability in self.capabilities
        wanted = {capability, "admin"} | ({"jobs:write"} if capability == "jobs:read" else set())
        return not wanted.isdisjoint(self.capabilities)
