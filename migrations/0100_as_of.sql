-- Readers of what stood at an earlier position find the tables that are live, and whether this version of the program
-- filled them.
grant select (generation, code_version) on read.projections to benchtrail_reader;
