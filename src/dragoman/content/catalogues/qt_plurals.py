"""The plural forms of Qt: its own table, neither CLDR's nor gettext's.

Promises how many forms Qt Linguist and lrelease want in a language, in which order, and which CLDR category
each stands for, found by sampling numbers. A language that the table does not name has two forms, as English.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from langcodes import Language

from dragoman.content.lexers.po_header import PluralRule, declared_rule

_ONE = "n == 1"
_ENDS_IN_1 = "n % 10 == 1 && n % 100 != 11"
_ENDS_IN_2_TO_4 = "n % 10 >= 2 && n % 10 <= 4 && (n % 100 < 10 || n % 100 > 20)"
_RULES: Mapping[str, tuple[str, ...]] = {
    "bi my zh dz fj gn hu id ja jv ko ms na om fa su tt th bo tr vi yo za": (),
    "hy br fr pt-BR ti wa": ("n < 2",),
    "is": (_ENDS_IN_1,),
    "lv": (_ENDS_IN_1, "n != 0"),
    "dv iu ik ga gv mi se sm sa": (_ONE, "n == 2"),
    "gd": ("n == 1 || n == 11", "n == 2 || n == 12", "n >= 3 && n <= 19"),
    "cs sk": (_ONE, "n >= 2 && n <= 4"),
    "mk": ("n % 10 == 1", "n % 10 == 2"),
    "lt": (_ENDS_IN_1, "n % 10 != 0 && (n % 100 < 10 || n % 100 > 19)"),
    "be bs hr ru sr uk": (_ENDS_IN_1, _ENDS_IN_2_TO_4),
    "pl": (_ONE, _ENDS_IN_2_TO_4),
    "ro mo": (_ONE, "n == 0 || (n % 100 >= 1 && n % 100 <= 19)"),
    "sl": ("n % 100 == 1", "n % 100 == 2", "n % 100 >= 3 && n % 100 <= 4"),
    "mt": (_ONE, "n == 0 || (n % 100 >= 1 && n % 100 <= 10)", "n % 100 >= 11 && n % 100 <= 19"),
    "cy": ("n == 0", _ONE, "n >= 2 && n <= 5", "n == 6"),
    "ar": ("n == 0", _ONE, "n == 2", "n % 100 >= 3 && n % 100 <= 10", "n % 100 >= 11"),
    "fil tl": ("n <= 1", "n % 10 == 4 || n % 10 == 6 || n % 10 == 9"),
    "ca": (_ONE, "n == 11 || n / 1000 == 11 || n / 1000000 == 11"),
}
"""Languages → the conditions of all their forms but the last, which is for every other number."""
_ENGLISH = (_ONE,)


@lru_cache(maxsize=256)
def rule(locale: str) -> PluralRule:
    """The rule of a locale; a region has its own where the table names it."""
    language = Language.get(locale)
    names = (f"{language.language}-{language.territory}", language.language or "")
    conditions = next(
        (tests for name in names for known, tests in _RULES.items() if name in known.split()), None
    )
    conditions = _ENGLISH if conditions is None else conditions
    formula = "0"
    if conditions:
        chain = [f"({test}) ? {index} : " for index, test in enumerate(conditions)]
        formula = "".join(chain) + str(len(conditions))
    found = declared_rule(f"nplurals={len(conditions) + 1}; plural={formula};", locale)
    if found is None:
        raise ValueError(f"the table of Qt's plurals holds no formula for {locale}")
    return found
