# SPDX-License-Identifier: GPL-2.0-only
"""Rewrites the text of matplotlib's SVGs so that several fit into one page."""

import xml.etree.ElementTree as ET

_FONTS = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"


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
