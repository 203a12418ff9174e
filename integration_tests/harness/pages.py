"""Pages of which a part is made from the code."""


def with_block(page: str, made_by: str, block: str) -> str:
    """Return a page with a block between its two marks, of which the first names the command that made it."""
    begin, end = f"<!-- begin: {made_by} -->\n", "<!-- end -->\n"
    before, found_begin, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found_begin and found_end):
        raise ValueError(f"the page lacks {begin!r} or {end!r}")
    return f"{before}{begin}{block}{end}{after}"
