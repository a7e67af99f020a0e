"""Files that carry translations and terms from tool to tool: read and written as streams, never spliced."""
