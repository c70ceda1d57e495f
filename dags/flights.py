"""The flights that left New York in 2013, each with its airline, its plane and both airports. `rejoin demo` runs this file."""

from rejoin import Topology, debezium, snapshot
from rejoin.airflow import to_dag

nyc = Topology("flights")

airlines = nyc.table("airlines", key="carrier", schema="carrier STRING, name STRING", source=snapshot("landing/airlines"))
airports = nyc.table("airports", key="faa", schema="faa STRING, name STRING", source=snapshot("landing/airports"))
planes = nyc.table(
    "planes",
    key="tailnum",
    schema="tailnum STRING, year INT, manufacturer STRING, model STRING, seats INT",
    source=snapshot("landing/planes", null="NA"),
)
flights = nyc.table(
    "flights",
    key=["time_hour", "carrier", "flight"],
    schema="""time_hour TIMESTAMP, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING,
              dep_delay INT, arr_delay INT, air_time INT, distance INT""",
    source=debezium("landing/flights"),
)

# Airlines are all known, so an inner join. Some planes and destinations are not: a left join keeps their flights.
enriched = (
    flights.join(airlines, foreign_key="carrier", select=["left.*", "right.name AS airline"])
    .left_join(planes, foreign_key="tailnum", select=["left.*", "right.manufacturer", "right.model", "right.seats", "right.year AS built"])
    .left_join(airports, foreign_key="origin", select=["left.*", "right.name AS from_airport"])
    .left_join(airports, foreign_key="dest", select=["left.*", "right.name AS to_airport"])
    .named("flights_enriched")
)

dag = to_dag(nyc, schedule="@daily")
