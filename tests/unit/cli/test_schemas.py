"""The published JSON schemas match the models."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from footplate.cli import json_output_models
from footplate.cli.pipeline_file import pipeline_models

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "schemas"


@pytest.mark.parametrize("name", json_output_models.SCHEMAS)
def test_a_schema_is_current(name: str) -> None:
    assert (FOLDER / f"{name}.json").read_text() == json_output_models.generate_schema(name), (
        "update them: python -m footplate.cli.json_output_models docs/schemas"
    )
    Draft202012Validator.check_schema(json.loads(json_output_models.generate_schema(name)))


def test_every_schema_file_has_a_model() -> None:
    assert {file.stem for file in FOLDER.iterdir()} == {*json_output_models.SCHEMAS, "pipeline.schema"}


def test_the_schema_of_pipeline_files_is_current() -> None:
    assert (FOLDER / "pipeline.schema.json").read_text() == pipeline_models.generate_schema()
    Draft202012Validator.check_schema(json.loads(pipeline_models.generate_schema()))


def test_a_schema_refuses_other_output() -> None:
    validator = Draft202012Validator(json.loads(json_output_models.generate_schema("run")))
    assert not validator.is_valid({"type": "result", "session_id": "sesn_1"})
