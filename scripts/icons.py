"""The icons of the home screen, drawn from static/icon.svg by Chromium: `.venv/bin/python scripts/icons.py`.

What it draws is kept in static/icons, so this runs only when the drawing changes.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

STATIC = Path(__file__).resolve().parent.parent / "static"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# A phone may cut a maskable icon down to a circle of 80 %: no round corners of its own, and the drawing well inside.
ICONS = {
    "icon-192": (192, False),
    "icon-512": (512, False),
    "icon-maskable-512": (512, True),
    "icon-apple-180": (180, True),
}


def main() -> int:
    """Draw all of them; 1 where there is no browser."""
    chromium = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if chromium is None:
        print("icons: no Chromium here; on Debian and Ubuntu: apt-get install chromium", file=sys.stderr)
        return 1
    drawing = (STATIC / "icon.svg").read_text()
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, (size, full) in ICONS.items():
            page = browser.new_page(viewport={"width": size, "height": size})
            page.set_content(
                f"<style>body{{margin:0}}svg{{display:block;width:{size}px}}</style>{shaped(drawing, full)}"
            )
            page.screenshot(path=STATIC / "icons" / f"{name}.png", omit_background=True)
            page.close()
        browser.close()
    return 0


def shaped(drawing: str, full: bool) -> str:
    """The drawing, or one whose ground goes to the edges and whose lines stay in the middle."""
    if not full:
        return drawing
    return drawing.replace('rx="5"', 'rx="0"').replace("<path", '<path transform="translate(4 4) scale(.667)"')


if __name__ == "__main__":
    sys.exit(main())
