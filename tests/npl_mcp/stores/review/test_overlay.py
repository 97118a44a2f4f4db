"""Pictures that are drawn on: decoded again and looked at."""

from __future__ import annotations

import io
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from PIL import Image

from npl_mcp.stores.base.errors import StoreError
from npl_mcp.stores.review import overlay
from npl_mcp.stores.review.overlay import (
    CANVAS_PIXELS,
    MAX_MARKS,
    MAX_PIXELS,
    NARROWEST,
    Legend,
    Mark,
    draw,
    picture_format,
    picture_size,
)

BLUE = (136, 170, 204)


def picture(
    size: tuple[int, int] = (400, 300), mode: str = "RGB", kind: str = "PNG", **options: Any
) -> bytes:
    color: Any = {"L": 170, "1": 1, "P": 3, "I;16": 40_000}.get(mode, BLUE)
    if mode in ("RGBA", "CMYK"):
        color = (*BLUE, 128)
    elif mode == "LA":
        color = (170, 128)
    out = io.BytesIO()
    Image.new(mode, size, color).save(out, kind, **options)
    return out.getvalue()


def shown(content: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(content))
    image.load()
    return image


def mark(number: int, x: int, y: int, comment: str = "look here", persona: str = "bob") -> Mark:
    return Mark(str(number), x, y, persona, comment)


def test_marks_are_drawn_where_they_belong_and_nowhere_else() -> None:
    """Pixels at the spots changed; all that is farther away is exactly as it was; a legend lies below."""
    marks = [mark(1, 60, 50), mark(2, 300, 200)]
    result = shown(draw(picture(), marks)).convert("RGB")
    assert result.width == 400
    assert result.height > 300
    for one in marks:
        around = result.crop((one.x - 8, one.y - 8, one.x + 9, one.y + 9))
        assert (around.getpixel((8, 1)), len(around.getcolors() or ())) != (BLUE, 1)
    far = [
        result.getpixel((x, y))
        for x in range(400)
        for y in range(300)
        if all((x - one.x) ** 2 + (y - one.y) ** 2 > 20**2 for one in marks)
    ]
    assert set(far) == {BLUE}
    legend = result.crop((0, 300, 400, result.height)).getcolors(100_000) or []
    assert max(legend)[1] == (255, 255, 255)
    assert len(legend) > 10


def test_marks_on_one_spot_are_all_seen() -> None:
    """The second is put beside the first, and a line leads to its spot."""
    one = shown(draw(picture(), [mark(1, 100, 100)])).convert("RGB").crop((0, 0, 400, 300))
    two = shown(draw(picture(), [mark(1, 100, 100), mark(2, 100, 100)])).convert("RGB").crop((0, 0, 400, 300))

    def changed(image: Image.Image) -> int:
        return 400 * 300 - next(count for count, color in image.getcolors(100_000) or () if color == BLUE)

    assert changed(two) > 1.8 * changed(one)


@pytest.mark.parametrize(("x", "y"), [(0, 0), (399, 299), (0, 299), (399, 0)])
def test_marks_in_a_corner_stay_inside(x: int, y: int) -> None:
    """Nothing of a mark is cut off."""
    result = shown(draw(picture(), [mark(1, x, y)])).convert("RGB")
    band = result.crop((0, 300, 400, 306)).getcolors()
    assert band == [(2400, (255, 255, 255))]


@pytest.mark.parametrize("size", [(1, 1), (3, 200), (24, 24), (2000, 40)])
def test_tiny_and_narrow_pictures_get_a_readable_legend(size: tuple[int, int]) -> None:
    """The result is wide enough for the comments; the picture keeps its place."""
    result = shown(draw(picture(size), [mark(1, 0, 0)]))
    assert result.width >= 360
    assert result.height > size[1] + 20


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_every_kind_of_png_can_be_drawn_on(mode: str) -> None:
    """The result is a PNG, and what could be seen through still can."""
    result = draw(picture(mode=mode), [mark(1, 50, 50)])
    assert picture_format(result) == "PNG"
    assert shown(result).mode == ("RGBA" if mode in ("LA", "RGBA") else "RGB")


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_a_jpeg_stays_a_jpeg(mode: str) -> None:
    """Whatever its colours are written in."""
    result = draw(picture(mode=mode, kind="JPEG"), [mark(1, 50, 50)])
    assert picture_format(result) == "JPEG"


def test_a_turned_photograph_is_drawn_on_as_it_is_seen() -> None:
    """Size and spots are those a person sees, after the camera's orientation."""
    exif = Image.Exif()
    exif[0x0112] = 6
    content = picture((400, 300), kind="JPEG", exif=exif)
    assert picture_size(content) == (300, 400)
    result = shown(draw(content, [mark(1, 20, 390)]))
    assert result.width == 360
    assert result.height > 400


def test_equal_input_gives_equal_bytes() -> None:
    """So that a second copy is recognised as the first."""
    marks = [mark(1, 10, 10), mark(2, 200, 100, "ü 堆肥 \U0001f44d " * 40)]
    assert draw(picture(), marks) == draw(picture(), marks)


def test_long_comments_and_many_of_them_have_an_end() -> None:
    """The legend stays bounded whatever people write."""
    one = shown(draw(picture(), [mark(1, 10, 10, "word " * 10_000)]))
    assert one.height < 500
    many = [mark(number, number % 400, number % 300, "x" * 400) for number in range(1, 300)]
    assert shown(draw(picture(), many)).height < 9_000


BROKEN = {
    "cut off": picture()[:200],
    "only the first bytes": picture()[:8],
    "damaged": picture()[:60] + b"\xff" * 400,
    "another format's body": b"\xff\xd8\xffGIF89a",
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_damaged_picture_is_reported(case: str) -> None:
    """It ends in a clear error, not in a defect."""
    with pytest.raises(StoreError):
        draw(BROKEN[case], [mark(1, 0, 0)])


def test_a_picture_too_large_to_draw_on_is_not_decoded() -> None:
    """Its header is enough to refuse it."""
    side = int(MAX_PIXELS**0.5) + 1
    out = io.BytesIO()
    Image.new("1", (side, side)).save(out, "PNG")
    with pytest.raises(StoreError, match="pixels"):
        picture_size(out.getvalue())


def png(width: int, height: int, depth: int = 1, color: int = 0) -> bytes:
    """Return a picture that is all header: what it says it holds would be decoded next."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b""))
        + chunk(b"IEND", b"")
    )


THIN = {
    "one pixel wide": (1, MAX_PIXELS),
    "narrower than the comments": (NARROWEST // 2, CANVAS_PIXELS // NARROWEST),
    "one pixel high": (MAX_PIXELS, 1),
}


@pytest.mark.parametrize("case", THIN)
def test_the_size_of_the_result_decides_before_anything_is_decoded(case: str) -> None:
    """A picture of a hundred bytes would be widened to gigabytes."""
    content = png(*THIN[case])
    assert len(content) < 100
    with pytest.raises(StoreError, match="with its comments the picture would have"):
        draw(content, [mark(1, 0, 0)])


def test_a_large_picture_has_as_many_comments_below_as_there_is_room_for() -> None:
    """The rest are counted."""
    marks = [mark(number, 10, 10, "a comment " * 40) for number in range(1, 60)]
    size = (2_000, 8_000)
    legend = Legend(size, marks)
    assert legend.width * legend.bottom <= CANVAS_PIXELS
    assert size[1] < legend.bottom


def test_marks_are_drawn_up_to_a_number() -> None:
    """Each is placed beside all others, so their number is what counts."""
    marks = [mark(number, 5, 5) for number in range(1, MAX_MARKS + 1)]
    assert draw(picture(), [*marks, mark(0, 380, 280)]) == draw(picture(), [*marks, mark(0, 20, 20)])


def test_pictures_are_drawn_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of many callers gets its own picture; whoever waits too long for the others is told."""
    places = [(20 * number, 15 * number) for number in range(1, 9)]
    alone = [draw(picture(), [mark(1, *place)]) for place in places]
    with ThreadPoolExecutor(len(places)) as pool:
        assert list(pool.map(lambda place: draw(picture(), [mark(1, *place)]), places)) == alone
    monkeypatch.setattr(overlay, "TURN_SECONDS", 0.01)
    with overlay.TURN, pytest.raises(StoreError, match="too many pictures"):
        draw(picture(), [mark(1, 60, 50)])


def test_the_size_of_a_picture_is_read_from_its_header() -> None:
    """Not even a picture that does not say how it is turned is decoded for that."""
    assert picture_size(png(4_000, 4_000, 8, 2)) == (4_000, 4_000)
