"""The HTML report: aggregates computed on Spark, and the page rendered from them."""
