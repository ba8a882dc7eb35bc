"""Streaming deep reinforcement learning: a network learns from one transition at a time, without replay.

The methods are those of Elsayed, Vasan and Mahmood, *Streaming Deep Reinforcement Learning Finally Works*, 2024 (arXiv
2410.14606). `MLP` is a network whose whole step is one compiled call. `StreamTD` predicts; `StreamQ`, `StreamSarsa` and `StreamAC`
act. `ObGD` is their optimiser for PyTorch modules.
"""

from trueonline.deep.network import MLP
from trueonline.deep.obgd import ObGD
from trueonline.deep.parts import EpisodeTime, RewardScale, RunningMoments
from trueonline.deep.stream_ac import StreamAC
from trueonline.deep.stream_q import StreamQ
from trueonline.deep.stream_sarsa import StreamSarsa
from trueonline.deep.stream_td import StreamTD
from trueonline.deep.true_online_head import TrueOnlineHead, TrueOnlineHeadQ, TrueOnlineHeadSarsa

__all__ = [
    "MLP",
    "EpisodeTime",
    "ObGD",
    "RewardScale",
    "RunningMoments",
    "StreamAC",
    "StreamQ",
    "StreamSarsa",
    "StreamTD",
    "TrueOnlineHead",
    "TrueOnlineHeadQ",
    "TrueOnlineHeadSarsa",
]
