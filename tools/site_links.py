"""A hook of MkDocs: links of docs/ to files beside it (sources, recipes, records) are checked against the checkout.

On the site they become the file's path, since a site has no sources; in the repository they stay links. A link to a
file that is not there is a warning, which `mkdocs build --strict` ends on. Links to folders of docs/ go to their README."""
import logging
import os
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOG = logging.getLogger("mkdocs.hooks.site_links")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#:\s]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown, page, config, files):
    folder = (ROOT / "docs" / page.file.src_uri).parent

    def mended(match):
        text, path, anchor = match.groups()
        target = pathlib.Path(os.path.normpath(folder / path))
        inside = target.is_relative_to(ROOT / "docs")
        if not target.exists():
            LOG.warning("%s: there is no %s", page.file.src_uri, path)
        elif inside and target.is_dir():
            index = target / "README.md"
            return f"[{text}]({path.rstrip('/')}/README.md)" if index.exists() else f"`{target.relative_to(ROOT)}`"
        elif not inside:
            name = str(target.relative_to(ROOT))
            return f"{text}" if text.strip("`") == name else f"{text} (`{name}`)"
        return match.group()

    parts = re.split(r"(?ms)(^```.*?^```$)", markdown)
    return "".join(part if part.startswith("```") else LINK.sub(mended, part) for part in parts)
