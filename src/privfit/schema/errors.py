"""What a schema says when a public fact is missing or wrong."""

MOST_SHOWN = 120
"""Characters of a value that an error quotes. No command varies it."""


class SchemaError(ValueError):
    """A public fact is missing or contradicts another one. Nothing has been charged.

    See Also
    --------
    Schema : Where public facts are stated.
    """


def shown(value: object) -> str:
    """A value as an error quotes it: cut off where it is long, its type where it cannot be written."""
    try:
        text = repr(value)
    except Exception:  # an integer of more digits than Python writes, or an object of the user's own
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "..."
