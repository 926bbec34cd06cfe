# SPDX-License-Identifier: GPL-2.0-only
"""Which mode auto ends on, and what that costs: the kernel's code, on a clock that is scripted.

In the slowed host nothing takes time but what the fills write, and that takes what the test says.
So every decision is exact, on any machine, however busy it is. The bytes are those of base.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from kernel_lines import WHOLE
from test_identity import MARGIN, SECTION, Case, Memmap, differences, open_memmap

from pagemint import build, native, source
from pagemint.measure import FIRST_PFN, STRUCT_PAGE, WORKLOADS

PAGES = 1 << 22  # 16 GiB of device, 256 MiB of memory map
FULL = 100_000_000_000 // 4096  # pages of the device that a bench has
CHUNK = (256 << 10) // STRUCT_PAGE
LOST = (6 << 20) // STRUCT_PAGE  # pages that the loser writes at the most
RACE = (32 << 20) // STRUCT_PAGE  # pages from which on there is a race
SINGLE = ("template", "streaming", "fill")


@dataclass(frozen=True)
class Speeds:
    """A machine.

    Attributes:
        cached: picoseconds a page with cached stores.
        streamed: with streaming ones.
        hidden: with cached ones as long as the cache has room, if that is not the same.
        cache: pages that the cache has room for.
        every: nanoseconds on the average between two delays, or 0.
        late: nanoseconds of a delay.
        seed: of when they come.
    """

    cached: int
    streamed: int
    hidden: int = 0
    cache: int = 0
    every: int = 0
    late: int = 0
    seed: int = 0

    def words(self) -> tuple[object, ...]:
        """The arguments of the host's speeds command."""
        slow = (self.hidden, self.cache, self.cached, self.streamed)
        return ("scripted", *slow, self.every, self.late, self.seed)

    def alone(self, mode: str, pages: int) -> int:
        """Picoseconds of `pages` in one mode, without delays."""
        if mode != "template":
            return pages * self.streamed
        hidden = min(pages, self.cache)
        return hidden * self.hidden + (pages - hidden) * self.cached


@dataclass(frozen=True)
class Told:
    """What the message at the end says."""

    pages: int
    us: int
    auto: bool
    mode: str
    ratio: float | None


MACHINES = {
    "streamed": Speeds(cached=4900, streamed=3500),
    "cached": Speeds(cached=3500, streamed=4900),
    "cached, at first": Speeds(hidden=3000, cache=RACE // 2 + 77, cached=4900, streamed=3500),
}


@pytest.fixture(scope="module", params=WHOLE)
def program(request: pytest.FixtureRequest) -> native.Program:
    return native.link(build.trees(source.get(request.param)), build.DEBIAN, slowed=True)


@pytest.fixture(scope="module")
def memmap(program: native.Program) -> Iterator[Memmap]:
    yield from open_memmap(program, trace=False)


@pytest.fixture(scope="module")
def host(program: native.Program) -> Iterator[native.Host]:
    with native.Host(program) as running:
        running.patch("plain", messages=True)
        running.ask("map", FIRST_PFN, PAGES, -1)
        yield running


def init(
    host: native.Host,
    speeds: Speeds,
    mode: str = "auto",
    workload: str = "fsdax",
    pages: int = PAGES,
    altmap: bool = True,
) -> Told:
    """Initialise a memory map in a machine and return what it said."""
    one = WORKLOADS[workload]
    host.ask("mode", mode)
    host.ask("speeds", *speeds.words())
    own = (int(one.altmap and altmap), 0, 0)
    host.ask("init", "patched", FIRST_PFN, pages, one.type, one.order, *own, 0, 0)
    said = host.ask("said")
    found = re.fullmatch(
        r"memmap_init_zone_device initialised (\d+) pages in (\d+)us "
        r"\((auto: )?(\w+)(?:, (\d+\.\d\d)x)?, 1 thread\)",
        said,
    )
    assert found, said
    ratio = None if found[5] is None else float(found[5])
    return Told(int(found[1]), int(found[2]), bool(found[3]), found[4], ratio)


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize(
    ("speeds", "mode", "ratio"),
    [
        (Speeds(cached=4900, streamed=3500), "fill", 1.40),
        (Speeds(cached=3500, streamed=4900), "template", 1.40),
        (Speeds(cached=3500, streamed=10500), "template", 3.00),
        (Speeds(cached=35000, streamed=3500), "fill", 10.00),
        (Speeds(cached=3500, streamed=3500), "fill", 1.00),
        # Ahead by less than the margin, and by more.
        (Speeds(cached=3500, streamed=3550), "fill", 0.98),
        (Speeds(cached=3500, streamed=3570), "template", 1.02),
    ],
)
def test_the_faster_one_writes_the_rest(
    host: native.Host, workload: str, speeds: Speeds, mode: str, ratio: float
) -> None:
    told = init(host, speeds, workload=workload)
    assert (told.pages, told.auto, told.mode) == (PAGES, True, mode)
    assert told.ratio == pytest.approx(ratio, abs=0.011)


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("megabytes", [1, 4, 32, 96, 160])
def test_a_cache_hides_nothing_for_good(host: native.Host, workload: str, megabytes: int) -> None:
    cache = (megabytes << 20) // STRUCT_PAGE
    lost = Speeds(hidden=1500, cache=cache, cached=4900, streamed=3500)
    assert init(host, lost, workload=workload).mode == "fill"
    kept = Speeds(hidden=1500, cache=cache, cached=3000, streamed=3500)
    assert init(host, kept, workload=workload).mode == "template"


@pytest.mark.parametrize("before", range(0, 10 << 20, 512 << 10))
def test_a_race_that_does_not_end_names_who_won_last(host: native.Host, before: int) -> None:
    # The cache is full that many bytes before the end: the second heat is over, or is not.
    cache = RACE - before // STRUCT_PAGE
    told = init(host, Speeds(hidden=2500, cache=cache, cached=4900, streamed=3500), pages=RACE)
    assert told.ratio == pytest.approx(1.40, abs=0.011)
    assert told.mode == "template" or before >= 6 << 20


@pytest.mark.parametrize(("pages", "raced"), [(RACE - 1, False), (RACE, True)])
def test_a_small_memory_map_has_no_race(host: native.Host, pages: int, raced: bool) -> None:
    told = init(host, Speeds(cached=4900, streamed=3500), pages=pages)
    assert told.auto
    assert told.mode == ("fill" if raced else "template")
    assert (told.ratio is not None) == raced


def test_what_is_not_written_does_not_count(host: native.Host) -> None:
    # 128 pages of each 512: it is the memory map that is small.
    speeds = Speeds(cached=4900, streamed=3500)
    assert init(host, speeds, workload="devdax", pages=4 * RACE - 512, altmap=False).ratio is None
    assert init(host, speeds, workload="devdax", pages=4 * RACE, altmap=False).ratio is not None


@pytest.mark.parametrize("mode", ["slow", *SINGLE])
def test_a_mode_that_is_set_stays(host: native.Host, mode: str) -> None:
    for speeds in (Speeds(cached=9000, streamed=3500), Speeds(cached=3500, streamed=9000)):
        told = init(host, speeds, mode)
        assert (told.auto, told.mode, told.ratio) == (False, mode, None)


@st.composite
def machines(draw: st.DrawFn) -> Speeds:
    """Any speeds of which one is up to thirty times the other, any cache."""
    streamed = draw(st.integers(1000, 100_000))
    cached = max(100, int(streamed * 2 ** draw(st.floats(-5, 5))))
    hidden = draw(st.integers(min(cached, 100), cached))
    return Speeds(cached, streamed, hidden, draw(st.integers(0, 2 * PAGES)))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(speeds=machines())
@example(speeds=Speeds(cached=6650, streamed=3500, hidden=3400, cache=RACE))
@example(speeds=Speeds(cached=10_000, streamed=300_000))
@example(speeds=Speeds(cached=300_000, streamed=10_000))
def test_what_the_loser_writes_is_bounded(host: native.Host, speeds: Speeds) -> None:
    lost = init(host, speeds).us * 10**6 - min(speeds.alone(mode, PAGES) for mode in SINGLE)
    margin = PAGES * min(speeds.cached, speeds.streamed) // 64
    assert lost <= LOST * abs(speeds.cached - speeds.streamed) + margin
    if not speeds.cache:
        # The margin is lost only by those who are within it.
        best = min(speeds.cached, speeds.streamed)
        assert lost <= 0.02 * FULL * best


@pytest.mark.parametrize("mode", ["template", "fill"])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_slowed_stores_take_their_time_in_the_run_that_makes_them(
    host: native.Host, workload: str, mode: str
) -> None:
    one, ns = WORKLOADS[workload], 200
    speeds = (0, 0, ns * 1000, 0) if mode == "template" else (0, 0, 0, ns * 1000)
    host.ask("mode", mode)
    host.ask("speeds", "real", *speeds, 0, 0, 0)
    own = (int(one.altmap), 0, 0, 0, 0)
    said = host.ask("init", "patched", FIRST_PFN, RACE, one.type, one.order, *own)
    # Of a compound four pages are written as on base.
    assert int(said.split()[0]) > 0.98 * ns * RACE


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    slower=st.floats(1.1, 4),
    cached_wins=st.booleans(),
    every=st.integers(50_000, 4_000_000),
    late=st.integers(1_000, 4_000_000),
    seed=st.integers(0, 1 << 60),
)
# All of the first three streamed chunks are late, and none of the cached ones.
@example(slower=1.25, cached_wins=False, every=50_000, late=21_505, seed=6_828_756)
def test_delays_decide_nothing(
    host: native.Host, slower: float, cached_wins: bool, every: int, late: int, seed: int
) -> None:
    # The CPU is there half of the time.
    late = min(late, every)
    pair = (3500, int(3500 * slower))
    cached, streamed = pair if cached_wins else pair[::-1]
    told = init(host, Speeds(cached, streamed, every=every, late=late, seed=seed), pages=RACE)
    assert told.mode == ("template" if cached_wins else "fill")


@pytest.mark.parametrize("every", [20_000, 100_000, 1_000_000])
@pytest.mark.parametrize("late", [5_000, 50_000])
def test_a_delay_in_a_chunk_is_no_reason_to_change(
    host: native.Host, every: int, late: int
) -> None:
    # The heats that the delays bring about are lost by the same one again.
    speeds = Speeds(cached=3500, streamed=4900, every=every, late=late, seed=1)
    assert init(host, speeds).mode == "template"


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    "case",
    [
        # The last chunk ends with the range, and is a page short or long.
        *(
            Case("fsdax", 0, SECTION - MARGIN - before, RACE + more, None, 1, False)
            for before, more in ((0, 2), (0, 1), (0, 3), (1, 0), (2, CHUNK + 2), (CHUNK, CHUNK - 1))
        ),
        Case("private", 0, 0, RACE + 5, None, 3, False),
        # A chunk ends in a compound, with one, and so does the range.
        Case("generic", 9, 512 - MARGIN, RACE + 512, (0, 0), 1, False),
        Case("generic", 9, 512 - MARGIN, RACE + 600, (0, 0), 1, True),
        Case("generic", 3, 8 - MARGIN % 8, RACE, (0, 0), 1, False),
        Case("fsdax", 18, (1 << 18) - MARGIN, 2 << 18, (0, 0), 1, False),
    ],
)
def test_a_race_leaves_what_base_leaves(memmap: Memmap, case: Case, machine: str) -> None:
    base, blocks, _ = memmap.init(case, "base")
    memmap.host.ask("speeds", *MACHINES[machine].words())
    data, own_blocks, _ = memmap.init(case, "auto")
    assert not differences(base, data)
    assert own_blocks == blocks
