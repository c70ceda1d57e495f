"""Departures from New York in 2013 as a stream: in which weather, and which planes were back within the day. `rejoin up` runs this file."""

from rejoin import Topology, records
from rejoin.airflow import to_dag

nyc = Topology("departures")

departures = nyc.stream(
    "departures",
    id=["time_hour", "carrier", "flight"],
    key="origin",
    event_time="departed_at",
    schema="time_hour TIMESTAMP, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, departed_at TIMESTAMP, dep_delay INT",
    source=records("landing/departures", null="NA"),
    lateness="1 day",  # files are days, and in no order of time
)
weather = nyc.stream(
    "weather",
    id=["origin", "observed_at"],
    key="origin",
    event_time="observed_at",
    schema="origin STRING, observed_at TIMESTAMP, temp DOUBLE, wind_speed DOUBLE, precip DOUBLE, visib DOUBLE",
    source=records("landing/weather", null="NA"),
)

# The weather is observed on the hour: of the 59 minutes before a departure there is one observation. A left join keeps departures without.
observed = ["right.origin AS station", "right.observed_at", "right.temp", "right.wind_speed", "right.precip", "right.visib"]
departures.left_join(weather, before="59 minutes", after="0 minutes", select=["left.*", *observed], name="departures_in_weather")

# A plane is back when it departs once more: pairs of departures of one plane, the earlier one on the left.
again = [f"right.{name} AS next_{name}" for name in ("time_hour", "carrier", "flight", "origin", "dest", "departed_at")]
departures.join(departures, on="tailnum", before="-1 minute", after="12 hours", select=["left.*", *again], name="planes_back")

dag = to_dag(nyc, schedule="@daily")
