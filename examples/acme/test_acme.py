import pytest
from acme.provider import Words
from acme.store import Flat
from bakeoff.plugins import Measure, MeasureConformance, ProviderConformance, StoreConformance


class TestFlat(StoreConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def open_store(cls):
        return lambda folder, dimensions: Flat(dimensions=dimensions, folder=folder)


class TestWords(ProviderConformance):
    @pytest.fixture
    def make(self):
        return Words

    @pytest.fixture
    def other_options(self):
        return {"dimensions": 32, "salt": 7, "timeout": 1.0}


class TestEnough(MeasureConformance):
    @pytest.fixture(params=["enough@3", "enough(m=1)@2", "enough(m=2,rel=2)"])
    def measure(self, request):
        return Measure.parse(request.param)
