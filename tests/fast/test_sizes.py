# SPDX-License-Identifier: GPL-2.0-only
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemint.base.errors import Failure
from pagemint.base.sizes import format_power, format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("100GB", 100 * 10**9),
        ("1.5 GiB", 3 * 2**29),
        ("1.1kB", 1100),
        ("4KIB", 4096),
        ("2tib", 2**41),
        ("3 MB", 3 * 10**6),
        ("7B", 7),
        (" 64 bytes ", 64),
        ("0.0001MB", 100),
    ],
)
def test_a_size_in_any_unit_is_parsed(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    ["", "100", "GB", "0GB", "0.4B", "-1GB", "1e3GB", "1.GB", "10 G B", "1XB", "nan GB", "9" * 99],
)
def test_a_bad_size_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(Failure) as caught:
        parse_size(text)
    assert "100GB" in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.text())
def test_any_text_is_a_positive_size_or_is_refused(text: str) -> None:
    with contextlib.suppress(Failure):
        assert parse_size(text) > 0


@given(st.integers(1, 10**15))
def test_a_printed_size_is_parsed_to_one_decimal(size: int) -> None:
    assert abs(parse_size(format_size(size)) - size) <= 0.05 * size


def test_sizes_are_printed_in_decimal_units() -> None:
    texts = ["999 B", "1.5 kB", "100 GB", "1.6 GB"]
    assert [format_size(n) for n in (999, 1500, 10**11, 1_562_500_000)] == texts


@pytest.mark.parametrize(
    ("size", "text"), [(1 << 16, "64 KiB"), (2 << 20, "2 MiB"), (1 << 40, "1 TiB")]
)
def test_a_power_of_two_is_printed_in_binary_units(size: int, text: str) -> None:
    assert format_power(size) == text
