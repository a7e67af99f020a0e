"""The member `xcstrings`."""

from __future__ import annotations

import json
from collections.abc import Iterator

from dragoman.content.formats.xcstrings import StringCatalogue
from tests.conformance.formats.member import Member


def _read(data: bytes) -> list[str]:
    return list(_values(json.loads(data)))


def _values(node: object) -> Iterator[str]:
    for name, value in node.items() if isinstance(node, dict) else ():
        if name == "value" and isinstance(value, str):
            yield value
        yield from _values(value)


MEMBERS = (
    Member(
        StringCatalogue(),
        "App/Localizable.xcstrings",
        """\
{
  "sourceLanguage" : "en",
  "strings" : {
    "" : {

    },
    "%lld alerts" : {
      "localizations" : {
        "en" : {
          "variations" : {
            "plural" : {
              "one" : {
                "stringUnit" : {
                  "state" : "translated",
                  "value" : "%lld alert"
                }
              },
              "other" : {
                "stringUnit" : {
                  "state" : "new",
                  "value" : "%lld alerts"
                }
              }
            }
          }
        },
        "fr" : {
          "stringUnit" : {
            "state" : "needs_review",
            "value" : "%lld alertes"
          }
        }
      }
    },
    "Empty/~" : {

    },
    "NoTr" : {
      "shouldTranslate" : false
    },
    "tap" : {
      "comment" : "A “hint”",
      "extractionState" : "manual",
      "localizations" : {
        "en" : {
          "variations" : {
            "device" : {
              "mac" : {
                "stringUnit" : {
                  "state" : "translated",
                  "value" : "Click"
                }
              },
              "other" : {
                "stringUnit" : {
                  "state" : "translated",
                  "value" : "Tap"
                }
              }
            }
          }
        }
      }
    },
    "trip" : {
      "localizations" : {
        "en" : {
          "stringUnit" : {
            "state" : "translated",
            "value" : "Trip with %#@birds@ and “more”"
          },
          "substitutions" : {
            "birds" : {
              "argNum" : 1,
              "formatSpecifier" : "lld",
              "variations" : {
                "plural" : {
                  "one" : {
                    "stringUnit" : {
                      "state" : "translated",
                      "value" : "%arg bird"
                    }
                  },
                  "other" : {
                    "stringUnit" : {
                      "state" : "translated",
                      "value" : "%arg birds"
                    }
                  }
                }
              }
            }
          }
        }
      }
    }
  },
  "version" : "1.0"
}""",
        oracle=_read,
        malformed=(
            ('{"sourceLanguage": "en"}', 1),
            ('{"sourceLanguage": "en",\n"strings": {"a": "b"}}', 2),
            ('{"sourceLanguage": "en",\n"strings": {"a": {\n"localizations": []}}}', 3),
            ('{"strings": {}}', 1),
            ("[]", 1),
        ),
    ),
)
