# SPDX-License-Identifier: GPL-2.0-only
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemint.base import machine
from pagemint.base.errors import Failure
from pagemint.guests.outside import room


@given(free=st.integers(1 << 29, 1 << 36), accel=st.sampled_from(["kvm", "tcg"]))
def test_a_size_that_is_offered_is_taken(free: int, accel: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "free", lambda: free)
        try:
            size = room.default(accel)
        except Failure as failure:
            assert "end some programs" in str(failure)
            return
        assert room.parse(f"{size}B") == size
        with pytest.raises(Failure) as refused:
            room.parse("100TB")
        remedy = re.search(r"give --size (\w+) or less", str(refused.value))
        assert remedy
        room.parse(remedy[1])
