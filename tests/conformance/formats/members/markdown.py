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

<p align="center">Markup <b>in</b> HTML</p>

:::note[A title]
And its body.
:::

[^1]: A note.

[ref]: /x "Said of it"
""",
    ),
    Member(
        MarkdownFormat(shortcode_texts=("title",)),
        "content/{locale}/page.markdown",
        """\
+++
title = 'A title'
weight = 1
[[cards]]
  title = "Another"
+++

{{< alert title="Heads up" >}}
Text in a shortcode.
{{< /alert >}}

--8<-- "part.md"
""",
    ),
    Member(
        MarkdownFormat(mdx=True),
        "docs/{locale}/guide.mdx",
        """\
import { Card } from 'cards';

# Heading “one”

<Card title="Its title">
    Text in a card.
</Card>

<Tab label="A label">Text in a tab</Tab>

Last words.
""",
    ),
)
