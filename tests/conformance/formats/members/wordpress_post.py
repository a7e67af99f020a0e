"""The member `wordpress_post`."""

from __future__ import annotations

import json

from dragoman.content.formats.wordpress_post import WordPressPost
from tests.conformance.formats.member import Member

_CONTENT = """\
<!-- wp:heading {"level":2} -->
<h2 class="wp-block-heading">A "heading"</h2>
<!-- /wp:heading -->

<!-- wp:group -->
<div class="wp-block-group"><!-- wp:paragraph -->
<p>See <a href="/x">this</a> &amp; [gallery ids="1,2"] that.</p>
<!-- /wp:paragraph --></div>
<!-- /wp:group -->

<!-- wp:acme/card {"title":"A \\u0022card\\u0022 \\u0026 more","items":[{"label":"One"}],"align":"wide"} /-->

<!-- wp:image {"id":7} -->
<figure class="wp-block-image"><img src="/a.png" alt="A cat"/><figcaption>Our cat</figcaption></figure>
<!-- /wp:image -->

[contact_form id="3"]

Old lines
of 😀 text
"""
_POST = """\
{
  "id": 42,
  "slug": "hello",
  "title": {"raw": "Hello “world”", "rendered": "Hello &#8220;world&#8221;"},
  "content": {"raw": CONTENT, "rendered": "<p>out</p>", "block_version": 1},
  "excerpt": {"raw": "In <em>short<\\/em>"},
  "acf": {"hero": {"headline": "Big words", "colour": "#ff0000", "layout": "two-columns"},
          "faq": [{"q": "Why?"}]},
  "meta": {"_yoast_wpseo_metadesc": "About %%sitename%%", "_edit_lock": "1 one"}
}
"""

MEMBERS = (
    Member(
        WordPressPost(),
        "posts/{locale}/42.json",
        _POST.replace("CONTENT", json.dumps(_CONTENT).replace("/", "\\/")),
        malformed=(('{"content": {"raw": "a\n"}}', 1), ("[\n1,\n]", 3)),
    ),
)
