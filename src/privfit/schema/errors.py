"""What a schema says when a public fact is missing or wrong."""


class SchemaError(ValueError):
    """A public fact is missing or contradicts another one. Nothing has been charged.

    See Also
    --------
    Schema : Where public facts are stated.
    """
