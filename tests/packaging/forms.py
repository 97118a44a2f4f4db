"""The forms of the files that say how to install and to connect the server, as far as they use them.

``tests/cases/forms.json`` has what the publisher of each format asks for; other names are errors.
"""

from typing import Any

from jsonschema import Draft202012Validator

from tests.conftest import cases

FORMS: dict[str, dict[str, Any]] = cases("forms")


def check(form: str, value: Any) -> Any:
    """Return a value that has the form of a file.

    :raises jsonschema.ValidationError: it has another.
    """
    Draft202012Validator(FORMS[form]).validate(value)
    return value
