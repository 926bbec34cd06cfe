# SPDX-License-Identifier: GPL-2.0-only
"""Fits matplotlib's SVGs into one page: names and ids of their own, plain attributes."""

import itertools
import re
import xml.etree.ElementTree as ET

_FONTS = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"


class Names:
    """Gives each plot a name of its own that can be a file name."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def __call__(self, *parts: str) -> str:
        """Return a name of these parts that no plot has yet."""
        name = re.sub("[^a-z0-9]+", "-", " ".join(parts).lower()).strip("-")[:60]
        names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
        own = next(each for each in names if each not in self._taken)
        self._taken.add(own)
        return own


def tidied(svg: str, name: str, alt: str) -> str:
    """Return matplotlib's SVG, rewritten so that it fits into a page with others.

    The ids of elements become unique to the plot, and styles become attributes, which a style
    sheet can override.
    """
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _XLINK)
    root = ET.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"):
                parent.remove(child)
    for element in root.iter():
        _plain_attributes(element, name)
    root.attrib |= {
        "role": "img",
        "aria-label": alt,
        "stroke-linejoin": "round",
        "font-family": _FONTS,
    }
    return ET.tostring(root, encoding="unicode")


def _plain_attributes(element: ET.Element, name: str) -> None:
    style = element.attrib.pop("style", "")
    for declaration in style.split(";"):
        key, _, value = (part.strip() for part in declaration.partition(":"))
        if key and key != "font-family":  # tidied() sets the reader's own fonts, narrower ones
            element.set(key, value)
    mark = element.attrib.pop("id", None)
    if mark in ("title", "unit", "legend"):
        element.set("class", mark)
    elif mark and element.tag.rpartition("}")[2] in ("clipPath", "pattern", "path", "g", "symbol"):
        element.set("id", f"{name}-{mark}")
    for key, value in element.attrib.items():
        if value.startswith("url(#"):
            element.set(key, f"url(#{name}-{value.removeprefix('url(#')}")
        elif key == f"{{{_XLINK}}}href":
            element.set(key, f"#{name}-{value.removeprefix('#')}")
