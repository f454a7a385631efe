"""One Spark session per test process, ended with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from minicluster.verify.spark import session


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    yield session.spark_session()
    session.close()
