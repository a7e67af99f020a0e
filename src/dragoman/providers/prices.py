"""What tokens cost, from an offline table or from settings. Shared ground of this room, no member of it.

Money is micro-USD, rounded up once a call. The table holds list prices and is not exact to the cent for every
contract; a price in the settings leads. Asks nobody, and reads no clock: where a price depends on the time,
the answer's own time counts, and the latest announced price while there is no answer.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Protocol

import genai_prices
from genai_prices import Usage, calc_price

_LATEST = datetime(2100, 1, 1, 12, tzinfo=UTC)
_FIRST_SECOND, _LAST_SECOND = int(datetime(2020, 1, 1, tzinfo=UTC).timestamp()), int(_LATEST.timestamp())
_MICROUSD = Decimal(1_000_000)


_TABLE = f"genai-prices {genai_prices.__version__}"


class Tariff(Protocol):
    """How tokens become money. `snapshot` names the prices for ever: of a later table it is another."""

    snapshot: str

    def microusd(
        self, prompt: int, output: int, cached: int = 0, created_seconds: int = 0, written: int = 0
    ) -> int:
        """The price of one call. `created_seconds` is Unix time or 0.

        `cached` (read from a cache) and `written` (to one) are parts of `prompt`.
        """
        ...


class Free:
    """Nobody bills."""

    snapshot = ""

    def microusd(
        self, prompt: int, output: int, cached: int = 0, created_seconds: int = 0, written: int = 0
    ) -> int:
        """Nothing."""
        return 0


class Flat:
    """A price from the settings: USD per million tokens, cached ones at the full price."""

    def __init__(self, prompt_usd_per_million: Decimal, output_usd_per_million: Decimal) -> None:
        self._prompt = prompt_usd_per_million
        self._output = output_usd_per_million
        self.snapshot = f"settings {prompt_usd_per_million}/{output_usd_per_million}"

    def microusd(
        self, prompt: int, output: int, cached: int = 0, created_seconds: int = 0, written: int = 0
    ) -> int:
        """The price of one call; a USD per million tokens is a micro-USD per token."""
        return math.ceil(prompt * self._prompt + output * self._output)


class Listed:
    """A model's price in the offline table."""

    snapshot = _TABLE

    def __init__(self, model: str, price_table: str | None) -> None:
        self._model = model
        self._price_table = price_table

    def microusd(
        self, prompt: int, output: int, cached: int = 0, created_seconds: int = 0, written: int = 0
    ) -> int:
        """The price of one call. Raises `LookupError` for a model that the table does not know."""
        known = _FIRST_SECOND <= created_seconds < _LAST_SECOND
        price = calc_price(
            Usage(
                input_tokens=prompt,
                output_tokens=output,
                cache_read_tokens=min(cached, prompt),
                cache_write_tokens=min(written, prompt - min(cached, prompt)),
            ),
            self._model,
            provider_id=self._price_table,
            genai_request_timestamp=datetime.fromtimestamp(created_seconds, UTC) if known else _LATEST,
        )
        return math.ceil(price.total_price * _MICROUSD)


class Halved:
    """What a batch costs: half, at every vendor whose batches are used here."""

    def __init__(self, tariff: Tariff) -> None:
        self._tariff = tariff
        self.snapshot = f"{tariff.snapshot} batch" if tariff.snapshot else ""

    def microusd(
        self, prompt: int, output: int, cached: int = 0, created_seconds: int = 0, written: int = 0
    ) -> int:
        """Half the price of the same call, rounded up."""
        return -(-self._tariff.microusd(prompt, output, cached, created_seconds, written) // 2)


def listed(model: str, price_table: str | None) -> Tariff | None:
    """The listed price of a model, None where the table has none."""
    tariff = Listed(model, price_table)
    try:
        tariff.microusd(1, 1)
    except LookupError:
        return None
    return tariff
