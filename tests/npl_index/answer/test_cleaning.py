"""Passages lose what only lays out their text, and nothing else."""

import pytest

from npl_index.answer.cleaning import cleaned

TABS = '<Tabs groupId="os">\n<TabItem value="a" label="Mac">\n\nUse `<a id="x">`.\n\n</TabItem>\n</Tabs>\n'
MODULE = "import Tabs from '@theme/Tabs';\nexport const size = {\n  wide: 1,\n};\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('| <a id="o" href="#o" title="o">opt</a> |\n', '| <a href="#o" title="o">opt</a> |\n'),
        ('<td class="x" align="left">7</td>\n', "<td>7</td>\n"),
        ('One.\n\n<div align="center">\n</div>\n\nTwo.\n', "One.\n\nTwo.\n"),
        ('Look <a name="here"></a>here, 2 < 3 > 1.\n', "Look here, 2 < 3 > 1.\n"),
        ('Run `<b>` <span class="x">now</span>.\n', "Run `<b>` <span>now</span>.\n"),
        (f"![x](data:image/png;base64,{'iVBOR' * 20}) A lamp.\n", "![x](data:image/png;base64,…) A lamp.\n"),
    ],
)
def test_layout_and_data_are_not_sent(text: str, shown: str) -> None:
    assert cleaned(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        TABS,
        '```html\n<td class="x">\n\n\n\n</td>\n```\n',
        'Code:\n\n    <td class="x">\n\nEnd.\n',
        "Replace `x` with <your token>:\n\n<area> <subject>\n\n- <version>\n",
        '<npl-rubric>\nJudge <npl-critique kind="short"></npl-critique>.\n</npl-rubric>\n',
        '<Card title="T">\nimport "y"\n\n\nText.\n',
        f"    data:image/png;base64,{'iVBOR' * 20}\n",
        MODULE,
    ],
)
def test_placeholders_labels_prompts_and_code_stay(text: str) -> None:
    assert cleaned(text) == text


def test_modules_of_mdx_are_not_sent() -> None:
    """They are paragraphs that begin with the keyword; prose and code that mention it stay."""
    prose = "Import duties, which\nimport nothing.\n\n```js\nimport x from 'y';\n```\n"
    assert cleaned(f"{MODULE}\n{prose}", is_mdx=True).lstrip("\n") == prose
