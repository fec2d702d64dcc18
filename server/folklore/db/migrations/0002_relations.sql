-- What memories have to do with one another: typed, weighted, directed, within one namespace. Neighbours in a session
-- are implied by their positions and cost no row here.
create table relations (
    namespace_id uuid not null,
    from_id uuid not null,
    type text not null,
    to_id uuid not null,
    strength real not null,
    author text not null,
    created_at timestamptz not null,
    constraint relations_pkey primary key (namespace_id, from_id, type, to_id),
    constraint relations_from_fkey foreign key (namespace_id, from_id)
        references memories (namespace_id, id) on delete cascade,
    constraint relations_to_fkey foreign key (namespace_id, to_id)
        references memories (namespace_id, id) on delete cascade
);
create index relations_to_idx on relations (namespace_id, to_id);
