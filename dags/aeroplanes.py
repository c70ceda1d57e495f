"""Every aeroplane that left New York in 2013 as a document: how often, how far, how late, and its latest flights. `rejoin demo` lands what this file reads."""

from rejoin import Topology, debezium, snapshot
from rejoin.airflow import to_dag

nyc = Topology("aeroplanes")

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

# A flight that is re-assigned leaves one document and comes into another. Some aeroplanes are not known: a left join keeps theirs.
flown = (
    flights.filter("tailnum IS NOT NULL")
    .group_by("tailnum")
    .aggregate(
        flights="count(*)",
        miles="sum(distance)",
        late="count(*) FILTER (WHERE arr_delay > 15)",
        airports="count(DISTINCT dest)",
        latest="collect(struct(time_hour, carrier, flight, origin, dest) ORDER BY time_hour DESC LIMIT 5)",
    )
)
about = ["right.manufacturer", "right.model", "right.seats", "right.year AS built"]
flown.left_join(planes, foreign_key="tailnum", select=["left.*", *about]).named("aeroplanes")

dag = to_dag(nyc, schedule="@daily")
