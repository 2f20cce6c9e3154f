"""Shortens long texts without cutting through a secret: the host could not recognise and redact half of one."""

from .caps import MIN_SECRET_CHARS

_secrets = {}


def hide(secrets):
    """Registers the secrets of this run, by name, for `cut` and `cut_head`."""
    _secrets.update((name, value) for name, value in secrets.items() if len(value) >= MIN_SECRET_CHARS)


def cut(text, limit):
    """Returns the text, or its head and tail if it is too long."""
    if len(text) <= limit:
        return text
    text = without_secrets(text)
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"


def cut_head(text, limit):
    """Returns the text, or its head if it is too long."""
    return text if len(text) <= limit else without_secrets(text)[:limit]


def without_secrets(text):
    """Replaces each secret of this run by a marker, the longest first."""
    for name in sorted(_secrets, key=lambda name: -len(_secrets[name])):
        text = text.replace(_secrets[name], f"[redacted:{name}]")
    return text
