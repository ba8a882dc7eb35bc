"""Agents in Gymnasium environments: training, evaluation, learning curves and films."""
