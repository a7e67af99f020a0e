"""Schemathesis over the whole contract: nothing breaks, and nothing undocumented is answered."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.surfaces.http.house import House, listening, served

BUDGET_SECONDS = 30
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "ignored_auth",
)


async def known_ids(house: House) -> str:
    """Settings for the fuzzer: things that are there, so that it comes further than `not_found`."""
    token = await house.token()
    manifest_id = await house.admit(token)
    asked = {"sourceLang": "en", "targetLang": "fr", "fields": {"title": "Hello"}}
    job = await house.client.post(
        "/v1/workspaces/default/jobs/translate", json=asked, headers=await house.token()
    )
    return f"""[parameters]
"path.workspace" = "default"
"path.manifest_id" = "{manifest_id}"
"path.job_id" = "{job.json()["job_id"]}"
"""


def test_nothing_that_fits_or_breaks_the_contract_breaks_us(database_url: str, tmp_path: Path) -> None:
    """[M-122, M-249]"""

    async def story() -> tuple[int | None, str]:
        async with served(database_url, tmp_path) as house:
            await house.see_worker()
            token = await house.exact_token(["admin"])
            async with listening(house.app) as address:
                (tmp_path / "schemathesis.toml").write_text(await known_ids(house), "utf-8")
                fuzzer = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "schemathesis.cli", "run", f"{address}/openapi.json"),
                    *("--header", f"Authorization: {token['Authorization']}"),
                    *("--checks", ",".join(CHECKS), "--phases", "examples,coverage,fuzzing"),
                    *("--max-time", str(BUDGET_SECONDS), "--seed", "7", "--no-shrink", "--warnings", "off"),
                    cwd=tmp_path,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.STDOUT,
                )
                told, _ = await fuzzer.communicate()
                return fuzzer.returncode, told.decode()

    status, told = asyncio.run(story())
    assert status == 0, told[-6_000:]
