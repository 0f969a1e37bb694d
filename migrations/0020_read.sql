-- The schema of the read tables. The control plane's role owns it and makes the tables themselves: a projection's
-- version owns its tables, and a rebuild makes the next version beside it.

create schema read authorization benchtrail_app;
comment on schema read is 'What readers see, folded from the event log. May be thrown away and rebuilt: `benchtrail rebuild`.';
grant usage on schema read to benchtrail_reader;

create table read.projections (
    name text collate "C" not null,
    generation integer not null check (generation > 0),
    code_version integer not null,
    state text not null check (state in ('building', 'live', 'retired')),
    position bigint not null default 0 check (position >= 0),
    unknown bigint not null default 0,
    primary key (name, generation)
);
create unique index projections_one_live on read.projections (name) where state = 'live';
comment on table read.projections is 'How far each set of read tables is. Moved by compare-and-set in the transaction that writes the rows.';
comment on column read.projections.generation is 'Which set of tables: those whose names end in _v and this number.';
comment on column read.projections.code_version is 'The version of the code that folds into them.';
comment on column read.projections.position is 'The last position that is folded in.';
comment on column read.projections.unknown is 'Events passed over because their type is unknown to the code.';

create table read.quarantine (
    name text collate "C" not null,
    generation integer not null,
    position bigint not null,
    event_type text collate "C" not null,
    error text not null,
    primary key (name, generation, position)
);
comment on table read.quarantine is 'Events that could not be folded. They are in the log; a rebuild with repaired code folds them.';

alter table read.projections owner to benchtrail_app;
alter table read.quarantine owner to benchtrail_app;
