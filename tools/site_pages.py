"""Hook of MkDocs: the site's pages are the repository's Markdown files, under their own paths.

Links between pages therefore need no translation. Links to other files of the repository become links to its
host.
"""

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
ASSETS = frozenset({".css", ".png", ".svg"})
NOT_PUBLISHED = frozenset({"build", "dist", "node_modules"})

_FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\|.*$", re.MULTILINE)
_CODE = re.compile(r"`[^`\n]+`")
_LINK = re.compile(r"\]\((?![a-z]+:|#)(?P<target>[^)#\s]*)(?P<anchor>#[^)\s]*)?\)")


def site_files(root: Path = ROOT) -> list[str]:
    """Return the paths of all pages, and of the assets in `docs`, relative to the repository."""
    pages = [path.relative_to(root) for path in root.glob("*.md")]
    for folder in sorted(root.iterdir()):
        if not folder.is_dir() or folder.name.startswith(".") or folder.name in NOT_PUBLISHED:
            continue
        suffixes = {".md", *ASSETS} if folder.name == "docs" else {".md"}
        found = (path.relative_to(root) for path in folder.rglob("*") if path.suffix in suffixes)
        pages += [path for path in found if not _is_private(path)]
    return sorted(map(str, pages))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Replace the files of `docs` by those of the whole repository."""
    theme = [file for file in files if file.src_dir != config.docs_dir]
    pages = [
        File(path, str(ROOT), config.site_dir, use_directory_urls=config.use_directory_urls)
        for path in site_files()
    ]
    return Files([*theme, *pages])


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the page with links that the site can follow."""
    published = {file.src_uri for file in files}
    return rewritten(markdown, page.file.src_uri, published, config.extra["repository"])


def rewritten(markdown: str, source: str, published: set[str], repository: str) -> str:
    """Return the text of the page `source`, with links that the site can follow and tables that it can read.

    A link to a folder becomes one to its README. A link to a file that the site does not have becomes one to
    the repository's host. Anything else is left as it is, so that MkDocs reports links that lead nowhere.
    """

    def link(found: re.Match[str]) -> str:
        target, anchor = found["target"], found["anchor"] or ""
        path = normpath(PurePosixPath(source).parent / target)
        if path in published or not target or path.startswith("..") or not (ROOT / path).exists():
            return found[0]
        if f"{path}/README.md" in published or (path == "." and "README.md" in published):
            return f"]({target.rstrip('/')}/README.md{anchor})"
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"]({repository}/{kind}/main/{path}{anchor})"

    def prose(text: str) -> str:
        return _LINK.sub(link, _ROW.sub(_with_plain_bars, text))

    parts, end = [], 0
    for fence in _FENCE.finditer(markdown):
        parts += [prose(markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, prose(markdown[end:])])


def _with_plain_bars(row: re.Match[str]) -> str:
    """Return a table's row without the escapes of bars in code, which GitHub needs and MkDocs would show."""
    return _CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0])


def _is_private(path: Path) -> bool:
    return any(part.startswith(".") or part in NOT_PUBLISHED for part in path.parts)
