"""Pictures of few pixels, and in PDF of plain glyphs: to draw them as users get them takes twice as long."""

import pytest

from trueonline import look


@pytest.fixture(scope="module", autouse=True)
def _quick_pictures(request):
    if request.module.__name__.endswith("test_average_reward"):  # this one draws as users do
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(look.RC, "savefig.dpi", 40)
        patch.setitem(look.RC, "pdf.fonttype", 3)
        yield
