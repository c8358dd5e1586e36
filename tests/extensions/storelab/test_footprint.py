"""Lines through two sizes by hand; real stores in processes of their own."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from bakeoff.extensions.storelab.footprint import Measured, footprints, measure, project
from bakeoff.extensions.storelab.tables import footprint_sheet, markdown
from bakeoff.extensions.storelab.vector_sample import from_files, synthetic
from bakeoff_providers.errors import InputError

from tests.errors import refuses, says


def _measured(
    documents: int, disk: int | None, resident: int, *, exact: bool = False, server: int | None = None
) -> Measured:
    return Measured(
        documents=documents, add_seconds=1.0, build_seconds=1.0, searchable_seconds=2.0, disk_bytes=disk,
        resident_bytes=resident, server_bytes=server, size_model_bytes=100.0 * documents, formula="n · 100",
        exact=exact,
    )  # fmt: skip


def test_the_line_by_hand() -> None:
    # disk: 600 bytes each and 1000 fixed; memory falls below zero at none, so it is taken in proportion
    formulas, (ahead,) = project(_measured(1024, 615_400, 100_000), _measured(2048, 1_229_800, 400_000), [4096])
    assert ahead.disk_bytes == pytest.approx(1000 + 600 * 4096)
    assert ahead.resident_bytes == pytest.approx(2 * 400_000)
    assert ahead.size_model_bytes == pytest.approx(409_600)
    assert ahead.build_seconds == pytest.approx(2.0 * (4096 * 12) / (2048 * 11))
    assert formulas["disk"] == "0.0 MB + 600 bytes · n"
    assert formulas["build"].endswith("s · n · log2 n")


def test_an_exact_store_grows_in_proportion_and_a_server_counts() -> None:
    small, large = (_measured(1000 * n, None, 10, exact=True, server=1000 * n + 10) for n in (1, 2))
    formulas, (ahead,) = project(small, large, [4000])
    assert ahead.disk_bytes is None
    assert ahead.resident_bytes == pytest.approx(20 + 4000)
    assert ahead.build_seconds == pytest.approx(4.0)
    assert "disk" not in formulas


def test_real_stores_in_processes_of_their_own() -> None:
    sample = synthetic(8000, 64, 10)
    found = footprints(sample, [("faiss", {}), ("faiss", {"index": "IVF9000,Flat"})])
    flat, lists = found.stores
    assert [each.documents for each in flat.measured] == [4000, 8000]
    assert flat.measured[1].disk_bytes == pytest.approx(8000 * 64 * 4, rel=0.01)
    assert flat.measured[1].resident_bytes >= 0.5 * 8000 * 64 * 4
    assert flat.measured[1].searchable_seconds >= flat.measured[1].add_seconds
    assert [each.documents for each in flat.projections] == [1_000_000, 100_000_000]
    assert flat.projections[0].size_model_bytes == pytest.approx(256e6)
    assert lists.not_run is not None
    says(lists.not_run, "'IVF9000,Flat'")
    text = markdown(footprint_sheet(found))
    assert "| faiss | 8,000 |" in text
    says(text, "IVF9000")


def test_a_servers_memory_is_its_own() -> None:
    sample = synthetic(500, 16, 1)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        found = measure("pgvector", {}, sample.documents, sample.queries[0], Path(folder))
    assert found.server_bytes is not None
    assert found.server_bytes > 1_000_000
    assert found.disk_bytes is not None
    assert found.disk_bytes > 500 * 16 * 4


def test_vectors_from_files(tmp_path: Path) -> None:
    import numpy as np

    vectors = np.array([[3.0, 4.0]] * 20)
    np.save(tmp_path / "v.npy", vectors)
    np.save(tmp_path / "q.npy", vectors[:3])
    sample = from_files(tmp_path / "v.npy", tmp_path / "q.npy")
    assert sample.documents[0].tolist() == pytest.approx([0.6, 0.8])
    assert (len(sample.documents), len(sample.queries)) == (20, 3)
    held = from_files(tmp_path / "v.npy", None)
    assert (len(held.documents), len(held.queries)) == (18, 2)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([[1.0, float("nan")]], "zeros, NaN"),
        ([[0.0, 0.0]], "zeros, NaN"),
        ([1.0, 2.0], "floating-point"),
        ([[1, 2]], "floating-point"),
        ([[1.0, 2.0]], "v.npy"),
        (None, "v.npy"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, content: object, said: str) -> None:
    import numpy as np

    file = tmp_path / "v.npy"
    if content is None:
        file.write_text("no")
    else:
        np.save(file, np.array(content))
    with refuses(InputError, said, file="v.npy"):
        from_files(file, None)
    with refuses(InputError, file="none.npy"):
        from_files(tmp_path / "none.npy", None)


def test_drawn_vectors_lie_in_clusters_and_are_drawn_alike_again() -> None:
    import numpy as np

    first, again = synthetic(900, 48, 30), synthetic(900, 48, 30)
    assert (first.documents == again.documents).all()
    assert np.linalg.norm(first.documents, axis=1) == pytest.approx(1, abs=1e-5)
    nearest = (first.queries @ first.documents.T).max(axis=1)
    assert nearest.mean() > 0.7  # isotropic vectors of 48 dimensions: about 3 / √48 = 0.45


@pytest.mark.parametrize(("documents", "clusters"), [(900, 30), (100, 10), (3, 2)])
def test_there_are_as_many_clusters_as_the_root_of_the_documents(documents: int, clusters: int) -> None:
    """Vectors of one cluster have a cosine of about 1 / (1 + 0.5²) = 0.8, of two clusters about 0 ± 1/√512."""
    from scipy.sparse.csgraph import connected_components

    sample = synthetic(documents, 512, 2_000)  # so many queries are drawn around every centre
    found, _ = connected_components(sample.queries @ sample.queries.T > 0.5)
    assert found == clusters
