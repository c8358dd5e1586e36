"""What a server sends is checked before it is believed, through every real SDK."""

from __future__ import annotations

import numpy as np
import pytest
from bakeoff_providers.base import Role
from bakeoff_providers.errors import BakeoffError, CallFailed, EmbeddingFailed
from bakeoff_providers.hosted import Hosted

from tests.dialects import Asked
from tests.providers.test_hosted import TEXTS, Case, case, make, provider, wire
from tests.wire import Fault, WireServer

__all__ = ["case", "provider", "wire"]  # fixtures


def refused(provider: Hosted) -> BakeoffError:
    with pytest.raises(EmbeddingFailed) as caught:
        provider.embed(TEXTS, Role.DOCUMENT)
    return caught.value


def test_a_redirect_is_not_followed(wire: WireServer, provider: Hosted) -> None:
    with WireServer() as other:
        for count, status in enumerate((301, 302, 303, 307, 308), start=1):
            wire.faults.append(Fault(status=status, headers={"Location": f"{other.url}/steal?key=k"}))
            with pytest.raises(CallFailed, match="redirect") as caught:
                provider.embed(TEXTS, Role.DOCUMENT)
            assert (caught.value.status, caught.value.retryable) == (status, False)
            assert "key=k" not in str(caught.value)
            assert len(wire.requests) == count
        assert other.requests == []


@pytest.mark.parametrize("kind", ["boolean", "text"])
def test_what_is_no_number_is_refused(wire: WireServer, provider: Hosted, kind: str) -> None:
    wire.faults.append(Fault(kind=kind))  # type: ignore[arg-type]
    assert "answer of another shape" in str(refused(provider))


def test_rows_are_placed_by_their_index(case: Case, wire: WireServer, provider: Hosted) -> None:
    if case.provider not in ("openai", "voyage"):
        pytest.skip("this protocol numbers no rows")
    wire.faults += [Fault(kind="reversed"), Fault(kind="duplicate")]
    expected = wire.vectors(Asked(provider.card.name, TEXTS, case.tasks[0]))
    np.testing.assert_allclose(provider.embed(TEXTS, Role.DOCUMENT).vectors, expected, rtol=1e-5)
    assert "indices" in str(refused(provider))


def test_an_answer_larger_than_asked_for_is_not_read(wire: WireServer, provider: Hosted) -> None:
    wire.faults.append(Fault(kind="huge"))
    assert "bytes" in str(refused(provider))


def test_an_answer_that_drips_has_a_deadline(case: Case, wire: WireServer) -> None:
    wire.faults.append(Fault(kind="drip", seconds=0.05))
    with pytest.raises(CallFailed, match="no answer in time") as caught:
        make(case, wire, timeout=0.4).embed(TEXTS, Role.DOCUMENT)
    assert caught.value.retryable
    assert len(wire.requests) == 1
