"""What tests of the command share."""
from __future__ import annotations

from collections.abc import Iterator

import pytest
from faulty import Host


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A process that children are forked off."""
    found = Host(tmp_path_factory.mktemp("host"))
    yield found
    found.close()
