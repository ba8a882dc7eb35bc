"""Sarsa(λ) on Atari games: the emulator, its screens as features, and runs by two protocols (section 5.3)."""

from trueonline.control.atari.backgrounds import learn_background, read_background, write_background
from trueonline.control.atari.emulator import Emulator, games
from trueonline.control.atari.runs import DISCOUNT, EPSILON, FRAMES, METHODS, PROTOCOLS, AtariRun, AtariSettings, play
from trueonline.control.atari.screens import N_FEATURES, NTSC, Screens

__all__ = [
    "DISCOUNT",
    "EPSILON",
    "FRAMES",
    "METHODS",
    "NTSC",
    "N_FEATURES",
    "PROTOCOLS",
    "AtariRun",
    "AtariSettings",
    "Emulator",
    "Screens",
    "games",
    "learn_background",
    "play",
    "read_background",
    "write_background",
]
