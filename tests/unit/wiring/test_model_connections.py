"""The file of connections: what it may contain, where the keys come from, and what `footplate doctor` says."""

from pathlib import Path

import pytest

from footplate.cli.actions import doctor_checks
from footplate.config import Settings
from footplate.domain.errors import Conflict
from footplate.domain.ports.harness import Endpoint
from footplate.wiring import model_connections

GPU = """
[[connections]]
name = "gpu"
provider = "vllm"
base_url = "http://gpu.internal:8000/v1"
models = ["qwen3-coder"]
"""
FULL = f"""{GPU}
[[connections]]
name = "openai"
provider = "openai"
organisation = "acme"
api_key_env = "ACME_KEY"

[[connections]]
name = "aws"
provider = "bedrock"
region = "eu-central-1"
access_key_id = "AKIDEXAMPLE"
api_key_file = "KEY_FILE"
"""


@pytest.fixture(autouse=True)
def no_provider_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "FOOTPLATE_ANTHROPIC_API_KEY", "FOOTPLATE_OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def settings(tmp_path: Path, text: str) -> Settings:
    (tmp_path / "key").write_text("a-secret-key\n")
    file = tmp_path / "connections.toml"
    file.write_text(text.replace("KEY_FILE", str(tmp_path / "key")))
    return Settings(model_connections=file, data_dir=tmp_path)


@pytest.mark.requirement("F4")
def test_keys_come_from_variables_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_KEY", "the-key-of-acme")
    monkeypatch.setenv("OPENAI_API_KEY", "the-shared-key")
    found = settings(tmp_path, FULL)
    shared, own = model_connections.load_endpoints(found)
    assert shared == {
        "openai": Endpoint("the-shared-key"),
        "gpu": Endpoint("", "http://gpu.internal:8000/v1", "vllm"),
        "aws": Endpoint("a-secret-key", None, "bedrock", "eu-central-1", "AKIDEXAMPLE"),
    }
    assert own == {"acme": {"openai": Endpoint("the-key-of-acme", None, "openai")}}
    assert model_connections.list_key_variables(found) == ["ACME_KEY"]
    assert not {"a-secret-key", "the-key-of-acme"} & set(repr((shared, own)).split("'"))


def test_the_catalog_needs_no_key(tmp_path: Path) -> None:
    found = model_connections.load_catalog(settings(tmp_path, FULL)).list_connections("acme")
    assert {name: (one.provider, one.models) for name, one in found.items()} == {
        "gpu": ("vllm", ("qwen3-coder",)),
        "aws": ("bedrock", ()),
        "openai": ("openai", ()),
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name = [", "is not valid"),
        (GPU.replace("gpu", "a/b", 1), "connections.0.name"),
        (GPU.replace('"vllm"', '"nobody"'), "the provider 'nobody' is unknown"),
        (GPU.replace("base_url", "# "), "set base_url"),
        (GPU.replace("http:", "file:"), "connections.0.base_url"),
        (GPU + 'api_key = "written-here"\n', "connections.0.api_key"),
        (GPU + 'region = "eu-central-1"\n', "only for Amazon Bedrock"),
        (GPU + 'api_key_env = "A"\napi_key_file = "/b"\n', "not both"),
        (GPU + GPU, "another connection with this name"),
        (GPU.replace('"vllm"', '"groq"'), "this provider needs a key"),
        (GPU.replace('"vllm"', '"bedrock"') + 'api_key_env = "A"\n', "set the region"),
    ],
)
async def test_a_faulty_file_is_refused_without_its_values(tmp_path: Path, text: str, problem: str) -> None:
    found = settings(tmp_path, text)
    with pytest.raises(Conflict) as refused:
        model_connections.load_catalog(found)
    assert problem in refused.value.message
    assert "written-here" not in refused.value.message
    assert (await doctor_checks.check_credentials(found)).state == "failed"


@pytest.mark.parametrize("text", [FULL, FULL.replace('"KEY_FILE"', '"/nonexistent/key"')])
async def test_a_missing_key_is_refused(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_KEY", "" if "KEY_FILE" in text else "key")
    found = settings(tmp_path, text)
    with pytest.raises(Conflict, match="needs, has no key"):
        model_connections.load_endpoints(found)
    assert (await doctor_checks.check_credentials(found)).state == "failed"


async def test_doctor_lists_the_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_KEY", "key")
    found = settings(tmp_path, FULL)
    finding = await doctor_checks.check_credentials(found)
    assert (finding.state, finding.detail) == ("ok", "gpu, openai (of acme), aws")
    monkeypatch.setattr(model_connections, "find_spec", lambda _: None)
    finding = await doctor_checks.check_credentials(found)
    assert (finding.state, finding.mend) == ("warning", "Install footplate[bedrock] where the workers run.")


def test_the_models_of_hosted_providers_are_known() -> None:
    assert "claude-sonnet-5" in model_connections.known_models("anthropic")
    assert model_connections.known_models("openai-chat") == model_connections.known_models("openai")
    assert model_connections.known_models("vllm") == ()
