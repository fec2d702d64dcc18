-- Every change of a memory: who, when, and what the columns it touched held before; enough to undo it. `revision` is the
-- number the memory had until then. An undoing is a change like others; `undoes` names the one it takes back.
create table revisions (
    namespace_id uuid not null,
    memory_id uuid not null,
    revision integer not null,
    action text not null,
    author text not null,
    agent text,
    changed_at timestamptz not null,
    reason text,
    undoes integer,
    before jsonb not null,
    constraint revisions_pkey primary key (namespace_id, memory_id, revision),
    constraint revisions_memory_fkey foreign key (namespace_id, memory_id)
        references memories (namespace_id, id) on delete cascade
);

-- Who was superseded by a memory is asked when that one is erased.
create index memories_superseded_idx on memories (namespace_id, superseded_by) where superseded_by is not null;

-- A deleted namespace is hidden at once and whole until its time of retention is over; its name is free.
alter table namespaces add column deleted_at timestamptz;
alter table namespaces add column deleted_by text;
drop index namespaces_name_key;
create unique index namespaces_name_key on namespaces (lower(name)) where deleted_at is null;

-- The planner keeps samples of columns, and would keep some of what was erased: none of these, which no plan needs.
alter table memories alter column content set statistics 0;
alter table memories alter column summary set statistics 0;
alter table memories alter column metadata set statistics 0;
alter table relations alter column type set statistics 0;
alter table revisions alter column reason set statistics 0;
alter table revisions alter column before set statistics 0;
