"""The claims of the Atari Prediction Benchmark. Their bounds were chosen before the first results were seen."""

from __future__ import annotations

from trueonline.paper.atari_prediction.runs import ADAPTED, MARKS, PLAIN, SWIFT
from trueonline.paper.atari_prediction.summary import HINDSIGHT, Found, title
from trueonline.paper.experiment import ENOUGH, FAILS, HOLDS, Claim, at_least, at_most

# Lifetime errors of SwiftTD that the published program gives: game → frames → error.
PUBLISHED = {
    "breakout": {30_000: 0.284, 210_000: 0.0528},
    "pong": {60_000: 0.0270},
    "space_invaders": {20_000: 0.328},
    "freeway": {20_000: 0.0604},
}
CLOSE = 0.02  # how far an error may be from a published one: the published program has single precision
BETTER, WORST = 0.9, 1.15  # adaptation over SwiftTD: the mean over games, and each game


def judge(found: Found) -> list[Claim]:
    """All claims, judged."""
    return [*_agreement(found), *_about_adaptation(found), _about_plain(found)]


def _agreement(found: Found) -> list[Claim]:
    """SwiftTD's errors are those of the published program, where its numbers of frames were played."""
    claims = []
    for game in sorted(set(found.games) & PUBLISHED.keys()):
        ours = dict(zip(MARKS, found.rows[game, SWIFT]["marks"], strict=False))
        for frames, theirs in PUBLISHED[game].items():
            if frames in ours:
                away = abs(ours[frames] / theirs - 1.0)
                numbers = {"here": ours[frames], "published program": theirs, "relative difference": away}
                claim = (
                    f"SwiftTD's lifetime error in the first {frames:,} frames of {title(game)} is that of the published program, "
                    f"within {CLOSE:.0%}"
                )
                claims.append(Claim(claim, HOLDS if away <= CLOSE else FAILS, numbers))
    return claims


def _about_adaptation(found: Found) -> list[Claim]:
    mean, low, high = found.means[ADAPTED]
    worst = int(found.ratios[ADAPTED].argmax())
    holds_if = f"the interval over games lies below it, with at least {ENOUGH} games"
    return [
        Claim(
            f"True online TD(λ) with adapted step-sizes has at most {BETTER:g} of SwiftTD's lifetime error (geometric mean over "
            "games; our claim)",
            at_most(low, high, BETTER),
            {
                "geometric mean": mean,
                "95 % interval over games": [low, high],
                "games": len(found.games),
                "holds if": holds_if,
            },
            len(found.games),
        ),
        Claim(
            f"It has at most {WORST:g} of SwiftTD's lifetime error in every game (our claim)",
            HOLDS if found.ratios[ADAPTED][worst] <= WORST else FAILS,
            {
                "largest ratio": float(found.ratios[ADAPTED][worst]),
                "game": title(found.games[worst]),
                "games above": int((found.ratios[ADAPTED] > WORST).sum()),
            },
        ),
    ]


def _about_plain(found: Found) -> Claim:
    mean, low, high = found.means[PLAIN]
    hindsight = found.means[HINDSIGHT]
    return Claim(
        "SwiftTD's lifetime error is at most that of plain true online TD(λ) at the one α that is best for all games (geometric "
        "mean)",
        at_least(low, high, 1.0),
        {
            "plain over SwiftTD's": mean,
            "95 % interval over games": [low, high],
            "at the best α of each game": hindsight[0],
            "interval of that": list(hindsight[1:]),
            "games": len(found.games),
        },
        len(found.games),
    )
