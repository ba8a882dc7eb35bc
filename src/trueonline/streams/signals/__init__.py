"""From the columns of a stream to the inputs of features: derived signals, and the scaling of each signal to [0, 1].

With Δt the seconds since the previous sample, a signal is the name of a column or one of these functions:

| function         | value                                                                                             |
|------------------|---------------------------------------------------------------------------------------------------|
| `velocity(x)`    | (x_t − x_{t−1}) / Δt, and 0 at a start                                                            |
| `velocity(x, τ)` | `lowpass(velocity(x), τ)`                                                                         |
| `lowpass(x, τ)`  | y ← y + (1 − e^{−Δt/τ})·(x − y), and y = x at a start                                             |
| `envelope(x, τ)` | the low-pass of the absolute value of x. The default of τ is 0.2 seconds                          |
| `lag(x, s)`      | x of s seconds ago: x of the newest earlier sample that is at least s seconds old. If no sample   |
|                  | is that old, x of the oldest sample since the start                                               |
| `hour(time)`     | the hour of the sample's own time, with fractions, from 0 to below 24                             |
| `weekday(time)`  | the day of the week of the sample's own time: 0 for Monday to 6 for Sunday                        |

x may itself be a derived signal: `envelope(velocity(x), 0.5)`. Times are in seconds, or have a unit: 0.2, 200ms, 5min, 1h. Numbers
beyond ±1e100, of columns and of derived signals, are moved to ±1e100, so that nothing ever overflows.
"""

from trueonline.streams.signals.bounds import Bounds
from trueonline.streams.signals.derived import MAX_ROOM, Signals
from trueonline.streams.signals.expressions import FUNCTIONS, spelling, split

__all__ = ["FUNCTIONS", "MAX_ROOM", "Bounds", "Signals", "spelling", "split"]
