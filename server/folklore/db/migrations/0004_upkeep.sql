-- What upkeep needs: what was put into which answer, and how far each chore is.

-- When the same text was last stored again: with the last recall it says how long a memory has not been of use.
alter table memories add column confirmed_at timestamptz;

-- Found by upkeep only: memories whose time is over, memories that wait to be erased, and who points at an erased one
-- (without the last, each erased row would read its whole namespace to check the foreign key).
create index memories_expires_idx on memories (namespace_id, expires_at) where expires_at is not null;
create index memories_forgotten_idx on memories (namespace_id, forgotten_at) where forgotten_at is not null;

-- A memory in an answer: at which rank, with which score. Of the question only a digest is kept. Written behind the
-- answers, so a row may be missing, and never wrong. Goes with its memory.
create table usage (
    namespace_id uuid not null,
    memory_id uuid not null,
    answer_id uuid not null,
    used_at timestamptz not null,
    rank smallint not null,
    score real,
    query bytea not null,
    session text,
    caller text not null,
    constraint usage_pkey primary key (namespace_id, memory_id, answer_id),
    constraint usage_memory_fkey foreign key (namespace_id, memory_id)
        references memories (namespace_id, id) on delete cascade
);
create index usage_time_idx on usage (namespace_id, used_at);

-- One row a chore of upkeep: who is at it and until when that counts, how the last run went, when the next is due.
-- A lease in a row and not an advisory lock: it holds behind a pooler and on a cluster, it shows who has it, and it ends
-- by itself when its holder is killed or cut off. Small: copied whole to every node of a cluster.
create table chores (
    name text not null,
    holder text,
    leased_until timestamptz,
    started_at timestamptz,
    finished_at timestamptz,
    seconds real,
    outcome text,
    done jsonb,
    error text,
    next_due timestamptz,
    -- What the next run must know of this one.
    notes jsonb,
    constraint chores_pkey primary key (name)
);
