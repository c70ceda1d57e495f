"""What spark-submit is given of a lake's settings."""

from rejoin.lake.session import properties


def test_a_password_survives_the_properties_file() -> None:
    # java.util.Properties: a backslash escapes, the first = ends the key.
    assert properties({"a.password": "x\\n=y", "b": "2"}) == "a.password=x\\\\n=y\nb=2\n"
