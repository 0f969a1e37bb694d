-- Exports say which position their rows are of, in the very snapshot that the rows are read from.

grant select (name, state, position) on read.projections to benchtrail_reader;
