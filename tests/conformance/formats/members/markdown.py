"""The member `markdown`."""

from __future__ import annotations

from dragoman.content.formats.markdown import MarkdownFormat
from tests.conformance.formats.member import Member

MEMBERS = (
    Member(
        MarkdownFormat(),
        "docs/{locale}/guide.md",
        """\
---
title: "A “title”"
date: 2026-01-01
---

# Heading {#id}

A paragraph with `code`
over two lines.

> quote
> goes on

- item one
- item two[^1]

| a | b |
| - | - |
| x | y |

```text
not this
```

[^1]: A note.
""",
    ),
    Member(
        MarkdownFormat(mdx=True),
        "docs/{locale}/guide.mdx",
        """\
import { Card } from 'cards';

# Heading “one”

<Card title="kept">
    Text in a card.
</Card>

<Tab label="kept">Text in a tab</Tab>

Last words.
""",
    ),
)
