"""Reading a report the way a checker does: its headings, its tags, and what it would load."""

from __future__ import annotations

from html.parser import HTMLParser

LOADING = ("src", "href", "srcset", "data", "action", "poster", "xlink:href", "background", "formaction")


class Page(HTMLParser):
    """Headings in order, every start tag with its attributes, and the text outside style."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[tuple[int, str]] = []
        self.words: list[str] = []
        self._inside: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "br", "img", "rect", "line", "circle", "path", "polygon", "polyline"):
            self._inside.append(tag)
        if tag[0] == "h" and tag[1:].isdigit():
            self.headings.append((int(tag[1]), ""))

    def handle_endtag(self, tag):
        if tag in self._inside:
            while self._inside.pop() != tag:
                pass

    def handle_data(self, data):
        if "style" in self._inside:
            return
        self.words.append(data)
        if self._inside and self._inside[-1][0] == "h" and self._inside[-1][1:].isdigit():
            level, text = self.headings[-1]
            self.headings[-1] = (level, text + data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def titled(self, title: str) -> bool:
        return any(text == title for _, text in self.headings)


def outside_loads(html: str) -> list[str]:
    """Everything in the page that a browser would fetch or run."""
    page, found = Page(html), []
    for tag, attributes in page.tags:
        if tag in ("script", "iframe", "object", "embed", "base", "form"):
            found.append(f"<{tag}>")
        found += [
            f"{tag} {name}={value}"
            for name, value in attributes.items()
            if name in LOADING and value and not value.startswith(("#", "data:"))
        ]
        found += [f"{tag} {name}" for name in attributes if name.startswith("on")]
    style = html[html.index("<style>") : html.index("</style>")]
    found += [word for word in ("@import", "url(", "http:", "https:", "//") if word in style]
    return found
