"""Studies of agents: sweeps over environments, agents and parameters, and statistics of their returns."""
