"""Forms built from configuration classes, for made-up options and for every method of the registry."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import Field

from mdqa.errors import ConfigError
from mdqa.methods.base import MethodConfig
from mdqa.registry import METHODS, method_class
from ui.forms import form_fields, read_form, spelled


class Sample(MethodConfig):
    """One option of each kind."""

    k: int = Field(6, ge=1, le=200, description="How many")
    top: int | None = Field(None, ge=1, description="At most")
    weight: float = Field(0.5, gt=0, description="How much")
    mode: Literal["a_b", "c"] = Field("a_b", description="Which")
    fast: bool = False
    weights: tuple[float, float] = (0.5, 1.0)
    name: str = ""


def test_fields_follow_the_class() -> None:
    fields = {field.name: field for field in form_fields(Sample)}
    assert [field.kind for field in fields.values()] == ["whole", "whole", "number", "choice", "switch", "list", "text"]
    assert (fields["k"].low, fields["k"].high, fields["k"].default) == (1, 200, 6)
    assert fields["k"].help == "How many (1 to 200)"
    assert fields["top"].optional and fields["top"].default is None
    assert fields["mode"].choices == ("a_b", "c")
    assert fields["weights"].default == "0.5, 1"


def test_abbreviations_in_names_are_spelled() -> None:
    assert [spelled(name) for name in ("sda_cot", "three_agent", "nf")] == ["SDA CoT", "three agent", "No-Filter"]


def test_values_come_back_as_the_class_takes_them() -> None:
    values = {"k": 3.0, "top": None, "weight": 0.25, "mode": "c", "fast": True, "weights": "1, 2", "name": "x"}
    assert Sample.parse(read_form(Sample, values)) == Sample(
        k=3, top=None, weight=0.25, mode="c", fast=True, weights=(1.0, 2.0), name="x"
    )


@pytest.mark.parametrize("values", [{"k": None}, {"k": 2.5}, {"k": True}, {"weight": ""}])
def test_wrong_kinds_are_refused_by_the_options_name(values: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"option '(K|Weight)'"):
        read_form(Sample, values)


@pytest.mark.parametrize("values", [{"k": 500}, {"unknown": 1}])
def test_limits_and_unknown_options_are_the_classes_business(values: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        Sample.parse(read_form(Sample, values))


@pytest.mark.parametrize("name", METHODS)
def test_every_methods_defaults_survive_the_form(name: str) -> None:
    config = method_class(name).Config
    fields = form_fields(config)
    assert all(field.help for field in fields), [field.name for field in fields if not field.help]
    assert config.parse(read_form(config, {field.name: field.default for field in fields})) == config()
