"""When will my job start? Futures of a machine from what is known of it now.

``state`` says what is known at a time, ``run_times`` how long jobs may run, ``arrivals`` which
jobs may come, ``futures`` simulates what follows, many times in one call of the engine, and
``forecasts`` says when jobs start, by ``times`` as people say them, ``reasons`` on what that
depends; ``backtests`` and ``scores`` how good that would have been, beside all ``methods``:
``boosting`` learns from waits alone, ``pool`` what past forecasts teach.
"""

from hpcgym.forecasting.backtests import backtest
from hpcgym.forecasting.forecasts import Forecast, StartForecast, forecast
from hpcgym.forecasting.state import MachineState, snapshot

__all__ = ["Forecast", "MachineState", "StartForecast", "backtest", "forecast", "snapshot"]
