"""What an SVG needs that stands in a file of its own: a namespace, and colors that follow the theme."""

from __future__ import annotations

NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'
THEMES = (
    "<style>svg{color:#1a1a1a;background:#fff}"
    "@media(prefers-color-scheme:dark){svg{color:#e8e8e8;background:#16181c}}</style>"
)
FONT = "system-ui,Helvetica,Arial,DejaVu Sans,sans-serif"
