"""Renders pictures of PIL, which it scales down before it encodes them."""

import io

MAX_PICTURE_PIXELS = 4_000_000
MAX_PICTURE_BYTES = 2_900_000  # before base64, so that a picture fits into one display


def render(image):
    """Returns the encoded picture by MIME type: PNG, or JPEG if the PNG is too large."""
    scale = min(1.0, (MAX_PICTURE_PIXELS / max(1, image.width * image.height)) ** 0.5)
    if scale < 1:
        image = image.resize((max(1, int(image.width * scale)), max(1, int(image.height * scale))))
    if image.mode not in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"):
        image = image.convert("RGB")
    content = _encode(image, "PNG")
    if len(content) <= MAX_PICTURE_BYTES:
        return {"image/png": content}
    return {"image/jpeg": _encode(image.convert("RGB"), "JPEG", quality=85)}


def _encode(image, name, **options):
    buffer = io.BytesIO()
    image.save(buffer, name, **options)
    return buffer.getvalue()
