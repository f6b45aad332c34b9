"""Device and number format."""

from __future__ import annotations

import pytest
import torch

from mdqa.backends.precision import bf16_flags, choose_device, choose_dtype, cpu_dtype, cuda_dtype, time_matmul
from mdqa.errors import ConfigError


def test_auto_device():
    assert choose_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    assert choose_device(" CPU ") == "cpu"


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "cuda:", "tpu", "", "cpu:1", "cuda:99", "cpu:-1"])
def test_impossible_devices_are_refused(device):
    if device == "cuda:" and torch.cuda.is_available():
        pytest.skip("the first CUDA device is there")
    with pytest.raises(ConfigError, match="device"):
        choose_device(device)


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
def test_a_format_by_hand_is_kept(name):
    dtype, reason = choose_dtype(name, "cpu")
    assert dtype is getattr(torch, name)
    assert reason == f"{name} on cpu: chosen by hand"


def test_unknown_format():
    with pytest.raises(ConfigError, match=r"int8.*auto, float32, bfloat16, float16"):
        choose_dtype("int8", "cpu")


def test_auto_on_this_processor_agrees_with_its_flags():
    dtype, reason = choose_dtype("auto", "cpu")
    if not bf16_flags():
        assert dtype is torch.float32
        assert "no bfloat16 units" in reason
    else:
        assert dtype in (torch.float32, torch.bfloat16)
        assert " ms " in reason


def test_flags_are_read_whole(tmp_path):
    info = tmp_path / "cpuinfo"
    info.write_text("processor : 0\nflags\t\t: fpu avx512_bf16 amx_bf16x\nvmx flags : amx_bf16\n", encoding="utf-8")
    assert bf16_flags(info) == ("AVX512-BF16",)
    info.write_text("flags : amx_bf16 avx512_bf16\n", encoding="utf-8")
    assert bf16_flags(info) == ("AMX-BF16", "AVX512-BF16")
    info.write_text("Features : fp asimd\n", encoding="utf-8")
    assert bf16_flags(info) == ()
    assert bf16_flags(tmp_path / "absent") == ()


def test_units_must_prove_themselves():
    assert cpu_dtype(())[0] is torch.float32
    fast, why = cpu_dtype(("AMX-BF16",), float32_ms=9.0, bfloat16_ms=3.0)
    assert fast is torch.bfloat16
    assert "AMX-BF16" in why
    assert "3.0 ms" in why
    slow, why = cpu_dtype(("AVX512-BF16",), float32_ms=9.0, bfloat16_ms=8.5)
    assert slow is torch.float32
    assert "not faster here" in why


def test_cuda_before_ampere_gets_float16():
    assert cuda_dtype(7, 5)[0] is torch.float16
    assert cuda_dtype(8, 0)[0] is torch.bfloat16
    assert cuda_dtype(9, 0, "cuda:1")[1].startswith("bfloat16 on cuda:1")


def test_timing_measures_something():
    both = time_matmul(rows=16, repeats=2)
    assert len(both) == 2
    assert all(0 < each < 60_000 for each in both)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_auto_on_cuda():
    dtype, reason = choose_dtype("auto", "cuda")
    assert dtype is (torch.bfloat16 if torch.cuda.get_device_capability()[0] >= 8 else torch.float16)
    assert "compute capability" in reason
