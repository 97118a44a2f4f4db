"""Passages lose what only lays out their text, and nothing else."""

import pytest

from npl_index.answer.cleaning import cleaned
from tests.conftest import cases

MODULE = "import Tabs from '@theme/Tabs';\nexport const size = {\n  wide: 1,\n};\n"


@pytest.mark.parametrize(
    ("text", "shown"), cases("npl_index/answer/cleaning")["layout_and_data_are_not_sent"]
)
def test_layout_and_data_are_not_sent(text: str, shown: str) -> None:
    assert cleaned(text) == shown


@pytest.mark.parametrize(
    "text", cases("npl_index/answer/cleaning")["placeholders_labels_prompts_and_code_stay"]
)
def test_placeholders_labels_prompts_and_code_stay(text: str) -> None:
    assert cleaned(text) == text


def test_modules_of_mdx_are_not_sent() -> None:
    """They are paragraphs that begin with the keyword; prose and code that mention it stay."""
    prose = "Import duties, which\nimport nothing.\n\n```js\nimport x from 'y';\n```\n"
    assert cleaned(f"{MODULE}\n{prose}", is_mdx=True).lstrip("\n") == prose
