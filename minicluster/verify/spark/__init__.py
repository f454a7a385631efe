"""Spark: the session, the data source, the tables of facts and the queries over them."""
