"""Times and rates as people write them."""

import pytest

from trueonline.streams.questions.durations import rate, seconds

TIMES = {"2": 2.0, "90s": 90.0, "15min": 900.0, "1h": 3600.0, "1d": 86400.0, "500ms": 0.5, "1.5 h": 5400.0}
RATES = {
    "40": 40.0,
    "40Hz": 40.0,
    "2.5 kHz": 2500.0,
    "5min": 1 / 300,
    "1/300": 1 / 300,
    "12/1h": 1 / 300,
    "1/5min": 1 / 300,
}
NO_TIMES = ("", "0", "-1", "soon", "5us", "5m", "1h30min", "inf", "nan", "1e999", "1_0s", "s")
NO_RATES = ("", "0", "-1", "fast", "1/0", "0/5", "5min/2", "1/soon", "40 Hertz", "inf", "1/2/3")


def test_times_have_units_and_rates_are_samples_a_second_or_the_time_between_them():
    assert {text: seconds(text) for text in TIMES} == TIMES
    assert {text: rate(text) for text in RATES} == RATES


@pytest.mark.parametrize("text", NO_TIMES)
def test_what_is_no_time_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match="15min"):
        seconds(text)


@pytest.mark.parametrize("text", NO_RATES)
def test_what_is_no_rate_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match="5min or 1/300"):
        rate(text)
