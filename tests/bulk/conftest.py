"""Small models, made once."""

import bulk_models
import pytest


@pytest.fixture(scope="session")
def small_model(tmp_path_factory) -> str:
    return bulk_models.write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def small_linker(tmp_path_factory) -> str:
    return bulk_models.write_linker(tmp_path_factory.mktemp("linker"))
