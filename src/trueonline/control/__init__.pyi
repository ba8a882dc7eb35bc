# Written by `python -m tools.generated`. Type checkers read this file, because __init__.py imports its names late.

from trueonline.control import atari as atari
from trueonline.control.accumulate_sarsa import AccumulateSarsa as AccumulateSarsa
from trueonline.control.agent import Agent as Agent
from trueonline.control.gym.curves import curve as curve
from trueonline.control.gym.evaluation import Evaluation as Evaluation
from trueonline.control.gym.evaluation import evaluate as evaluate
from trueonline.control.gym.films import film as film
from trueonline.control.gym.own_problems import environment as environment
from trueonline.control.gym.training import Training as Training
from trueonline.control.gym.training import train as train
from trueonline.control.policies import EpsilonGreedy as EpsilonGreedy
from trueonline.control.policies import Greedy as Greedy
from trueonline.control.policies import Linear as Linear
from trueonline.control.policies import Policy as Policy
from trueonline.control.policies import Softmax as Softmax
from trueonline.control.policies import Uniform as Uniform
from trueonline.control.replace_sarsa import ReplaceSarsa as ReplaceSarsa
from trueonline.control.studies.aggregates import aggregate as aggregate
from trueonline.control.studies.aggregates import profile as profile
from trueonline.control.studies.sweeps import sweep as sweep
from trueonline.control.swift_sarsa import SwiftSarsa as SwiftSarsa
from trueonline.control.true_online_differential_sarsa import TrueOnlineDifferentialSarsa as TrueOnlineDifferentialSarsa
from trueonline.control.true_online_sarsa import TrueOnlineSarsa as TrueOnlineSarsa
from trueonline.control.true_online_watkins_q import TrueOnlineWatkinsQ as TrueOnlineWatkinsQ
from trueonline.control.watkins_q import WatkinsQ as WatkinsQ
