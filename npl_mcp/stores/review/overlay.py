"""Pictures with numbered marks at the commented spots, and the comments below."""

from __future__ import annotations

import io
import struct
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

from npl_mcp.stores.artifact.descriptions import picture_type
from npl_mcp.stores.base.errors import StoreError
from npl_mcp.stores.base.extras import how_to_install

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

MAX_PIXELS = 16_000_000
"""Maximum pixels of an input picture: a screen of 5120 x 2880 fits."""

CANVAS_PIXELS = 18_000_000
"""Maximum pixels of a result: the picture, widened for readable comments, and the legend."""

TURN = threading.Lock()
"""Held while a picture is drawn: picture and result take eight bytes per pixel."""

TURN_SECONDS = 60.0
"""Seconds that a picture waits for its turn."""

MAX_MARKS = 500
"""Maximum marks; each is placed clear of all earlier ones, so the work is quadratic."""

NARROWEST = 360
"""Minimum width of the result in pixels, for readable comments."""

LEGEND_ENTRIES = 60
ENTRY_LINES = 4
JPEG_QUALITY = 92

_FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG"}
_ORIENTATION = 0x0112
_TURNED = (5, 6, 7, 8)
_MARK, _RING, _INK, _PAPER, _QUIET = "#d6204e", "#ffffff", "#1f2328", "#ffffff", "#59636e"


@dataclass(frozen=True, slots=True)
class Mark:
    """A comment to draw on a picture.

    :param number: number of the mark and of the comment.
    :param x: column in the displayed picture.
    :param y: row in the displayed picture.
    :param persona: author of the comment.
    :param comment: text of the comment.
    """

    number: str
    x: int
    y: int
    persona: str
    comment: str


def picture_format(content: bytes) -> str | None:
    """Return ``PNG`` or ``JPEG`` by the first bytes; ``None`` for anything else."""
    return _FORMATS.get(picture_type(content) or "")


def picture_size(content: bytes) -> tuple[int, int]:
    """Return width and height of the displayed picture, in pixels; only its header is decoded.

    :raises StoreError: the picture is damaged or has more than 16 million pixels, or Pillow is not installed.
    """
    image = _open(content)
    turned = _orientation(image) in _TURNED
    return (image.height, image.width) if turned else (image.width, image.height)


def draw(content: bytes, marks: Sequence[Mark]) -> bytes:
    """Draw marks on a picture and a legend below it; equal input gives equal bytes.

    The picture's header gives the result's size. The picture is decoded only after a check of that size, and
    while no other picture is drawn.

    :returns: a PNG for a PNG, a JPEG for a JPEG.
    :raises StoreError: the picture cannot be decoded, the result would be too large, or Pillow is not
        installed.
    """
    legend = Legend(picture_size(content), marks)
    if not TURN.acquire(timeout=TURN_SECONDS):
        raise StoreError("too many pictures are being drawn on", hint="try again")
    try:
        return _drawn(content, marks[:MAX_MARKS], legend)
    finally:
        TURN.release()


def _drawn(content: bytes, marks: Sequence[Mark], legend: Legend) -> bytes:
    from PIL import Image, ImageDraw, ImageFont

    kind = picture_format(content)
    picture = _decoded(content)
    radius = max(9, min(48, min(picture.size) // 24))
    pen = ImageDraw.Draw(picture)
    number_font: Any = ImageFont.load_default(max(10, radius))
    for mark, place in zip(marks, _places(marks, picture.size, radius), strict=True):
        if place != (mark.x, mark.y):
            pen.line([(mark.x, mark.y), place], fill=_MARK, width=max(2, radius // 6))
        _disc(pen, place, radius, mark.number, number_font)
    result = Image.new(picture.mode, (legend.width, legend.bottom), _PAPER)
    result.paste(picture, (0, 0))
    del picture, pen
    legend.draw(ImageDraw.Draw(result))
    out = io.BytesIO()
    options = {"quality": JPEG_QUALITY} if kind == "JPEG" else {}
    result.save(out, kind, **options)
    return out.getvalue()


def _open(content: bytes) -> Image:
    # Loaded late: few calls need it, and loading takes longer than most calls.
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        problem = "drawing on a picture needs Pillow, which is not installed"
        raise StoreError(problem, hint=how_to_install("pictures")) from None

    # The limit is checked here, before anything is decoded; Pillow's own only warns.
    Image.MAX_IMAGE_PIXELS = None
    try:
        image = Image.open(io.BytesIO(content), formats=tuple(_FORMATS.values()))
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise _damaged(error) from None
    if image.width * image.height > MAX_PIXELS:
        problem = f"the picture has {image.width} x {image.height} pixels"
        raise StoreError(problem, hint=f"at most {MAX_PIXELS:,} pixels can be annotated")
    return image


def _orientation(image: Image) -> int:
    """Return the Exif orientation of a picture; 1 if its header has none.

    Pillow's own method decodes the pixels of a PNG if they precede its orientation.
    """
    from PIL.Image import Exif

    found = Exif()
    with suppress(OSError, ValueError, TypeError, SyntaxError, struct.error):
        found.load(image.info.get("exif") or b"")
        return int(found.get(_ORIENTATION, 1))
    return 1


def _decoded(content: bytes) -> Image:
    from PIL import ImageOps

    try:
        image: Image = _open(content)
        # Either would copy a picture that needs no change.
        if _orientation(image) != 1:
            image = ImageOps.exif_transpose(image)
        image.load()
    except (OSError, ValueError, SyntaxError) as error:
        raise _damaged(error) from None
    if image.mode.startswith("I"):  # 16 bits of grey
        image = image.point(lambda value: value / 256).convert("L")
    seen_through = image.mode in ("LA", "PA", "RGBA", "La", "RGBa") or "transparency" in image.info
    mode = "RGBA" if seen_through else "RGB"
    return image if image.mode == mode else image.convert(mode)


def _damaged(error: Exception) -> StoreError:
    return StoreError(f"the picture cannot be decoded: {error}", hint="store a valid PNG or JPEG")


def _places(marks: Sequence[Mark], size: tuple[int, int], radius: int) -> list[tuple[int, int]]:
    """Return each mark's centre: at its spot, but inside the picture and clear of other marks."""
    width, height = size
    step = 2 * radius + 2
    places: list[tuple[int, int]] = []
    for mark in marks:
        at = (_inside(mark.x, width, radius), _inside(mark.y, height, radius))
        wanted = at
        for turn in range(24):
            if all(abs(at[0] - x) >= step or abs(at[1] - y) >= step for x, y in places):
                break
            ring, side = divmod(turn, 8)
            right, down = _AROUND[side]
            at = (
                _inside(wanted[0] + right * step * (ring + 1), width, radius),
                _inside(wanted[1] + down * step * (ring + 1), height, radius),
            )
        places.append(at)
    return places


_DASHES = {"\u2013": "-", "\u2014": "-", "\u2026": "..."}
_BOX = "\u25a1"

_AROUND = ((1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))


def _inside(value: int, length: int, radius: int) -> int:
    return length // 2 if length <= 2 * radius else max(radius, min(length - 1 - radius, value))


def _disc(pen: ImageDraw, at: tuple[int, int], radius: int, number: str, font: FreeTypeFont) -> None:
    x, y = at
    ring = max(2, radius // 6)
    pen.ellipse([x - radius, y - radius, x + radius, y + radius], fill=_RING)
    inner = radius - ring
    pen.ellipse([x - inner, y - inner, x + inner, y + inner], fill=_MARK)
    pen.text((x, y), number, fill=_RING, font=font, anchor="mm")


class Legend:
    """The comments below a picture, up to the available height.

    :param size: width and height of the picture, in pixels.
    :param marks: the marks with their comments.
    :raises StoreError: no comment fits.
    """

    def __init__(self, size: tuple[int, int], marks: Sequence[Mark]) -> None:
        from PIL import ImageFont

        self.width, self._top = max(size[0], NARROWEST), size[1]
        self._letters = max(13, min(30, size[0] // 45))
        self._font: Any = ImageFont.load_default(self._letters)
        self._line, self._indent = self._letters * 3 // 2, 3 * self._letters
        self._room = self.width - self._indent - self._letters
        self._entries: list[tuple[str, str, list[str]]] = []
        most = CANVAS_PIXELS // self.width
        for mark in marks[:LEGEND_ENTRIES]:
            entry = (mark.number, mark.persona, self._wrapped(mark.comment))
            # A line about the omitted comments must fit as well.
            if self._bottom([*self._entries, entry, ("", "", [])]) > most:
                break
            self._entries.append(entry)
        if omitted := len(marks) - len(self._entries):
            self._entries.append(("", f"and {omitted} more", []))
        self.bottom = self._bottom(self._entries)
        if self.bottom > most:
            problem = f"with its comments the picture would have {self.width} x {self.bottom} pixels"
            hint = f"at most {CANVAS_PIXELS:,} are drawn, and it is widened to {NARROWEST} at least"
            raise StoreError(problem, hint=hint)

    def _bottom(self, entries: Sequence[tuple[str, str, list[str]]]) -> int:
        """Return the pixels from the top of the picture to the end of a legend."""
        lines = sum(1 + len(lines) for _, _, lines in entries)
        return self._top + lines * self._line + (len(entries) + 2) * self._letters // 2 + self._letters

    def draw(self, pen: ImageDraw) -> None:
        """Draw the legend."""
        y = self._top + self._letters
        for number, persona, lines in self._entries:
            if number:
                _disc(pen, (self._indent // 2, y + self._line // 2), self._line // 2, number, self._font)
            pen.text((self._indent, y), self._shown(persona), fill=_QUIET, font=self._font)
            for line in lines:
                y += self._line
                pen.text((self._indent, y), line, fill=_INK, font=self._font)
            y += self._line + self._letters // 2

    def _wrapped(self, text: str) -> list[str]:
        """Return the lines of a comment that fit; the rest is cut off."""
        lines = [""]
        for word in self._shown(text).split():
            for piece in self._pieces(word):
                longer = f"{lines[-1]} {piece}".strip()
                if self._font.getlength(longer) <= self._room:
                    lines[-1] = longer
                else:
                    lines.append(piece)
            if len(lines) > ENTRY_LINES:
                break
        if len(lines) > ENTRY_LINES:
            lines = lines[:ENTRY_LINES]
            while self._font.getlength(f"{lines[-1]} ...") > self._room:
                lines[-1] = lines[-1][:-1]
            lines[-1] += " ..."
        return lines

    def _pieces(self, word: str) -> list[str]:
        """Split a word into pieces no longer than a line."""
        pieces = [word]
        while self._font.getlength(pieces[-1]) > self._room:
            last = pieces.pop()
            cut = max(1, int(len(last) * self._room / self._font.getlength(last)) - 1)
            pieces += [last[:cut], last[cut:]]
            if len(pieces) > ENTRY_LINES:
                break
        return pieces

    def _shown(self, text: str) -> str:
        """Replace characters that the font lacks: by letters without accents, else by a box."""
        return "".join(self._sign(sign) for sign in text[: 100 * ENTRY_LINES])

    def _sign(self, sign: str) -> str:
        if sign.isspace():
            return " "
        if sign.isprintable() and (sign.isascii() or not self._is_missing(sign)):
            return sign
        plain = _DASHES.get(sign) or normalize("NFKD", sign).encode("ascii", "ignore").decode()
        return plain if plain.isprintable() and plain else _BOX

    def _is_missing(self, sign: str) -> bool:
        # A font draws the same box for every missing character. This character is missing in every font.
        return bytes(self._font.getmask(sign)) == bytes(self._font.getmask("\U0010fffe"))
