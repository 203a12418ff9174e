"""From decoded records to tables. Every transform is a function of DataFrames; none reads or writes."""
