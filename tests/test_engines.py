"""The databases that tests share between processes."""

from pathlib import Path

import pytest

from tests import engines


@pytest.mark.engine("sqlite")
def test_a_database_that_another_process_made_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may already be open and have rows of that process."""
    database = tmp_path / "data" / "npl.db"
    complete = engines._file_with_tables()

    def slow() -> bytes:
        database.write_bytes(b"of the faster process")
        return complete

    monkeypatch.setattr(engines, "_file_with_tables", slow)
    engines.address(database.parent)
    assert database.read_bytes() == b"of the faster process"
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
