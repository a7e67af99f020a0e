"""Settings: `dragoman.toml`, then the environment (`DRAGOMAN_*`), then what the command line says; the
later wins.

Unsafe or contradicting settings are refused here, at start. Secrets are never settings: they are read from
the environment or a secret file by whoever needs them, at the moment of need.
"""

from __future__ import annotations

import ipaddress
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from dragoman.kernel import limits
from dragoman.kernel.errors import SettingsError
from dragoman.model.jobs import ADDRESSED

FILE = "dragoman.toml"
STATE_FOLDER = ".dragoman"


class ProviderSettings(BaseModel):
    """One named provider: a protocol and where it is spoken. `priced` is guessed from the address when
    absent.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    protocol: Literal[
        "pseudo",
        "rehearsal",
        "chat",
        "responses",
        "anthropic",
        "gemini",
        "apertium",
        "apertium-http",
        "deepl",
        "libretranslate",
    ]
    model: str = ""
    base_url: str = ""
    key_variable: str = Field(default="", max_length=limits.CREDENTIAL_NAME_CHARS_MAX)
    """Name of the environment variable that holds the key: a reference, never the key."""
    priced: bool | None = None
    requires_key: bool | None = None
    locales: tuple[str, ...] = ()
    api_version: str = ""
    """Azure's; the model is then the name of a deployment, and is spoken to at its own path."""
    identity: Literal["key", "managed"] = "key"
    """`managed` asks Azure under this machine's managed identity (`AZURE_CLIENT_ID`: a user-assigned one)."""
    fallback: tuple[str, ...] = ()
    """Who goes on where this one refuses to serve (key, money, unreachable): `name` or `name:model`."""
    keep_answers: bool = True
    """Whether a vendor that can store answers is to do so: a lost one is then found again, not paid again."""
    batches: bool | None = None
    """Whether calls can go out as batches at half the price; OpenAI's and Anthropic's can when absent."""
    examples: bool = True
    """Whether texts like the present ones, with their translations, are looked for and shown to a model."""
    reply_format: Literal["schema", "object", "none"] = "schema"
    """How a chat server is told to answer in JSON."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Members for the body of every request, such as `reasoning_effort`."""
    price_model: str = ""
    """The model whose list price counts, where the model's own name (of a deployment) says nothing."""
    usd_per_million_tokens: tuple[Decimal, Decimal] | None = None
    """Price of (input, output); leads the price table."""
    monthly_tokens: int | None = Field(default=None, gt=0)
    monthly_usd: float | None = Field(default=None, gt=0)
    """What this account may cost a workspace in a calendar month (UTC); absent is unbounded."""
    usd_per_million_characters: Decimal | None = Field(default=None, ge=0)
    """Price of the engines that bill by the character."""
    glossaries: dict[str, str] = Field(default_factory=dict)
    """DeepL: target locale (or `*`) → id of a glossary."""
    requests_per_second: float | None = Field(default=None, gt=0)
    tokens_per_minute: int | None = Field(default=None, gt=0)
    calls_at_once: int | None = Field(default=None, ge=1, le=10_000)
    """How fast and how widely this process calls the account, for all its jobs; absent is unbounded."""


class MemorySettings(BaseModel):
    """How a project uses what it has translated before."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    threshold: int = Field(default=limits.MEMORY_THRESHOLD, ge=limits.FUZZY_SCORE_MIN, le=100)
    """From which likeness, in per cent, a translation fills a field; below, it is an example at most."""


class ProjectSettings(BaseModel):
    """One named project: where its documents live, how its collections are cut, how it wants to sound."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: Literal["files", "http", "upload"] = "files"
    """`upload`: files that `dragoman up` sends from elsewhere; they lie in the state folder."""
    url: str = ""
    """Base URL of a source `http`."""
    token_variable: str = ""
    """Name of the environment variable that holds the source's bearer token: a reference, never the token."""
    source_locale: str = ""
    executor: Literal["", "dry-run:v1", "files:v1", "http:v1"] = ""
    """Who publishes; empty as the setting `executor` says. `dry-run:v1` writes nothing."""
    on_push: bool = False
    """Whether a push starts a run of convergence."""
    collections: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Of a source `files`: names of collections, each with its globs from the root."""
    locked: tuple[Annotated[str, Field(min_length=1, max_length=1_024)], ...] = ()
    """What nobody translates, whatever the mode: `document` or `document#key`, `*` for any characters."""
    memory: MemorySettings = MemorySettings()
    style: str = Field(default="", max_length=limits.STYLE_CHARS_MAX)
    """A note on style that is part of every question to a language model."""


class EngineSettings(BaseModel):
    """The engine that the site hands its work to; without an address it is the one in this process."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str = Field(default="", pattern=r"^(https?://[^\s/]+\S*)?$")
    token_variable: str = "DRAGOMAN_ENGINE_TOKEN"  # noqa: S105 - names of environment variables, here and below
    secret_variable: str = "DRAGOMAN_CALLBACK_SECRET"  # noqa: S105
    former_secret_variable: str = "DRAGOMAN_CALLBACK_SECRET_BEFORE"  # noqa: S105
    """While a secret is changed: what still may have signed."""
    forget_secrets: bool = False
    """Start although open work was sent under a secret that is gone: its events are refused, and the site
    asks instead.
    """
    plain_http: bool = False
    """Whether the engine may be spoken to unencrypted at an address that is not this machine's."""
    callback_url: str = Field(default="", pattern=r"^(https?://[^\s/]+\S*)?$", max_length=500)
    """Where the far engine reaches this site's `/v1/callbacks/submission`. Empty: the site asks instead."""


class SubmissionSettings(BaseModel):
    """What one submission to this process's engine may hold."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    items: int = Field(default=limits.ITEMS_PER_SUBMISSION, ge=1, le=limits.ITEMS_SETTING_MAX)
    bytes: int = Field(
        default=limits.SUBMISSION_BYTES_MAX,
        ge=limits.SUBMISSION_BYTES_SETTING[0],
        le=limits.SUBMISSION_BYTES_SETTING[1],
    )
    fields_per_item: int | None = Field(default=None, ge=1, le=limits.FIELDS_PER_ITEM_SETTING_MAX)
    """Absent is 100, and 10,000 for the site in this process."""
    field_characters: int = Field(
        default=limits.FIELD_CHARS_MAX, ge=limits.FIELD_CHARS_SETTING_MIN, le=limits.FIELD_CHARS_MAX
    )


class Settings(BaseSettings):
    """Everything that can be set. Frozen once made."""

    model_config = SettingsConfigDict(
        env_prefix="DRAGOMAN_", env_nested_delimiter="__", extra="forbid", frozen=True
    )

    workspace: str = "default"
    project: str = ""
    source_locale: str = "en"
    locales: tuple[str, ...] = ()
    """What `translate` translates into when no locale is named."""
    sources: tuple[str, ...] = ()
    """Files and folders that `translate` looks at when no path is named, from the root."""
    database_url: str = ""
    """Empty: the SQLite file in the state folder."""
    database_auth: Literal["", "azure"] = ""
    """`azure`: a token of this machine's managed identity is the password (PostgreSQL and MySQL in Azure)."""
    state_folder: Path = Path(STATE_FOLDER)
    root: Path = Path(".")
    """The working tree: documents are named relative to it, and nothing is written outside of it."""
    provider: str = "pseudo"
    providers: dict[str, ProviderSettings] = Field(default_factory=dict)
    projects: dict[str, ProjectSettings] = Field(default_factory=dict)
    """What differs from project to project; one that is not named reads files under the root."""
    openai_endpoint: str = ""
    calls_per_process: int = Field(default=limits.CALLS_PER_PROCESS_SERVE, ge=1, le=10_000)
    calls_per_workspace: int | None = Field(default=None, ge=1, le=10_000)
    calls_per_endpoint: int | None = Field(default=None, ge=1, le=10_000)
    """Calls at once of one process for one workspace, and to one server; absent is `calls_per_process`."""
    workspace_weights: dict[str, Annotated[int, Field(ge=1, le=1_000)]] = Field(default_factory=dict)
    """How many turns of a worker a workspace has while the others have one; kept in the database until a
    process with other weights starts.
    """
    jobs_per_process: int = Field(default=limits.JOBS_PER_PROCESS, ge=1, le=64)
    batch_size: int = Field(default=limits.BATCH_SIZE, ge=1, le=limits.BATCH_SIZE_MAX)
    concurrency: int = Field(default=limits.CONCURRENCY, ge=1, le=limits.CONCURRENCY_MAX)
    call_timeout_seconds: float = Field(default=limits.CALL_TIMEOUT_SECONDS, gt=0, le=600)
    job_lease_seconds: float = Field(default=limits.JOB_LEASE_SECONDS, ge=10, le=3600)
    prepare_per_step: int = Field(default=limits.PREPARE_PER_STEP, ge=1, le=1000)
    submit_per_step: int = Field(default=limits.SUBMIT_PER_STEP, ge=1, le=100)
    pairs_max: int = Field(default=limits.PAIRS_MAX, ge=limits.PAIRS_SETTING_MIN)
    request_bytes_max: int = Field(
        default=limits.REQUEST_BYTES_MAX,
        ge=limits.REQUEST_BYTES_SETTING[0],
        le=limits.REQUEST_BYTES_SETTING[1],
    )
    """What one request for translations may hold."""
    submissions: SubmissionSettings = Field(default_factory=SubmissionSettings)
    queue: str = ""
    """`memory` (the default), `sqs`, or `sqs://host:port` for a server of one's own."""
    queue_backend: Literal["", "memory", "sqs"] = ""
    """The same under another name; the two must agree."""
    sqs_endpoint: str = ""
    """Also read as `SQS_ENDPOINT`."""
    sqs_region: str = ""
    """Else as AWS's own settings say."""
    sqs_queue_prefix: str = ""
    sqs_poll_seconds: int = Field(default=limits.QUEUE_POLL_SECONDS, ge=1, le=limits.QUEUE_POLL_SECONDS)
    """How long one receive waits. A process that stops waits for it."""
    server: str = Field(default="", pattern=r"^(https?://[^\s/]+\S*)?$")
    """Where `up` has the project translated: its files are sent there, and the results fetched."""
    server_token_variable: str = "DRAGOMAN_TOKEN"  # noqa: S105 - the name of an environment variable
    lock: bool = False
    """Whether `translate` and `up` begin a `dragoman.lock`; one that is there is always kept."""
    engine: EngineSettings = Field(default_factory=EngineSettings)
    callback_networks: tuple[str, ...] = ()
    """Networks (CIDR) that events may come from; none means any, and the signature decides alone."""
    allow_anonymous_sync: bool = False
    """Whether `sync/translate` answers without a token; only to this machine, at a loopback address."""
    private_callbacks: bool = False
    """Whether events may be sent to addresses that are not public."""
    executor: Literal["dry-run:v1", "files:v1", "http:v1"] = "dry-run:v1"
    """Who publishes, in every project whose source it can write to; elsewhere nothing is written."""
    retention_days: int = Field(default=limits.RETENTION_DAYS, ge=limits.RETENTION_DAYS_MIN, le=3650)
    """How long a manifest, and a job's results, are kept after their end."""
    admission: Literal["open", "closed"] = "open"
    group_commit: bool = False
    """Share commits on database servers too; SQLite's one writer always does."""
    durable: bool = True
    """SQLite `synchronous=FULL`: what was answered 202 survives a power cut."""
    log_style: Literal["json", "console"] = "console"
    log_level: str = "WARNING"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags before environment; the file comes in below both, by `load`."""
        return init_settings, env_settings

    @property
    def database(self) -> str:
        """The database's URL."""
        return self.database_url or f"sqlite:///{(self.state_folder / 'dragoman.sqlite').absolute()}"

    @property
    def queue_kind(self) -> str:
        """`memory` or `sqs`."""
        return self.queue_backend or self.queue.partition(":")[0] or "memory"

    @property
    def queue_server(self) -> str:
        """The server that `queue` names; empty where it names none."""
        server = self.queue.partition("://")[2].rstrip("/")
        return f"http://{server}" if server else ""

    @property
    def embedded(self) -> bool:
        """Whether the database is a SQLite file of this host."""
        return self.database.startswith("sqlite")


def load(folder: Path, **flags: Any) -> Settings:
    """The settings in force in a folder. Raises `SettingsError` naming the setting and what is wrong with
    it.
    """
    root = find_root(folder)
    written = _read(root / FILE)
    try:
        environment = Settings()
        named = environment.model_fields_set
        below = {name: value for name, value in written.items() if name not in named}
        settings = Settings(**{"root": root, "state_folder": root / STATE_FOLDER, **below, **flags})
    except ValidationError as error:
        raise SettingsError(_explain(error)) from error
    _refuse_unsafe(settings)
    return settings


def find_root(folder: Path) -> Path:
    """The folder of `dragoman.toml`, else of the repository, else the folder itself."""
    here = folder.absolute()
    for mark in (FILE, ".git"):
        for candidate in (here, *here.parents):
            if (candidate / mark).exists():
                return candidate
    return here


def _read(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path.name} cannot be read: {error}") from error


def _explain(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"setting {place}: {first['msg']}"


def _refuse_unsafe(settings: Settings) -> None:
    if settings.job_lease_seconds <= settings.call_timeout_seconds + limits.LEASE_MARGIN_SECONDS:
        raise SettingsError(
            f"setting job_lease_seconds: {settings.job_lease_seconds:g} must be more than "
            f"call_timeout_seconds ({settings.call_timeout_seconds:g}) "
            f"and a margin of {limits.LEASE_MARGIN_SECONDS} seconds"
        )
    if settings.database_auth and settings.embedded:
        raise SettingsError(
            "setting database_auth: azure is for PostgreSQL and MySQL; a SQLite file has no login"
        )
    _refuse_unclear_queue(settings)
    _refuse_plain_engine(settings.engine)
    for name in settings.providers:
        if ADDRESSED in name or len(name) >= limits.CREDENTIAL_NAME_CHARS_MAX:
            most = limits.CREDENTIAL_NAME_CHARS_MAX - 1
            raise SettingsError(
                f"setting providers.{name}: a name holds no {ADDRESSED} and at most {most} characters"
            )
    for name, project in settings.projects.items():
        _refuse_source(f"setting projects.{name}", project)
    for network in settings.callback_networks:
        try:
            ipaddress.ip_network(network)
        except ValueError as error:
            raise SettingsError(f"setting callback_networks: {error}") from None
    if settings.openai_endpoint and "platform" in settings.providers:
        raise SettingsError("settings openai_endpoint and providers.platform disagree; keep one of them")


def _refuse_plain_engine(engine: EngineSettings) -> None:
    """Token and callback secret travel encrypted, or not beyond this machine."""
    if engine.url.startswith("http:") and not engine.plain_http and not _is_here(engine.url):
        raise SettingsError(
            "setting engine.url: https is wanted, for a token and a callback secret travel there;"
            " `plain_http = true` allows http"
        )


def _is_here(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _refuse_unclear_queue(settings: Settings) -> None:
    queue, server = settings.queue, settings.queue_server
    if queue not in ("", "memory", "sqs") and not queue.startswith("sqs://"):
        raise SettingsError(f"setting queue: {queue!r} is none of memory, sqs and sqs://host:port")
    if settings.queue_backend and queue and queue.partition(":")[0] != settings.queue_backend:
        raise SettingsError("settings queue and queue_backend disagree; keep one of them")
    if server and settings.sqs_endpoint and server != settings.sqs_endpoint.rstrip("/"):
        raise SettingsError("settings queue and sqs_endpoint name different servers; keep one of them")


def _refuse_source(place: str, project: ProjectSettings) -> None:
    writes = "http:v1" if project.source == "http" else "files:v1"
    if project.executor not in ("", "dry-run:v1", writes):
        raise SettingsError(f"{place}: {project.executor} does not write to a source {project.source}")
    if project.source != "http":
        if project.url or project.token_variable:
            raise SettingsError(f"{place}: url and token_variable are of a source http")
        return
    try:
        url = urlsplit(project.url)
        whole = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        whole = False
    if not whole or url.username or url.password or url.query or url.fragment:
        raise SettingsError(f"{place}: url must be http(s)://host/path, without user, query or fragment")
    if project.collections:
        raise SettingsError(f"{place}: collections are cut by the source itself")
