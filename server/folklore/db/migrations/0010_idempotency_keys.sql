-- What was asked under an idempotency key: the same again gets the same answer, whatever became of the memory's text since,
-- and something else under the key is refused. It is a digest of the text and of what it was to supersede and to be
-- related to; null where the key came with an import.
alter table memories add column key_request bytea;

-- Keys under which a text was confirmed that was known already. A memory has one key of its own, the one it was made with;
-- it may be confirmed under any number.
create table idempotency_keys (
    namespace_id uuid not null,
    key text not null,
    memory_id uuid not null,
    request bytea not null,
    constraint idempotency_keys_pkey primary key (namespace_id, key),
    constraint idempotency_keys_memory_fkey foreign key (namespace_id, memory_id)
        references memories (namespace_id, id) on delete cascade
);
create index idempotency_keys_memory_idx on idempotency_keys (namespace_id, memory_id);

alter table idempotency_keys enable row level security;
create policy idempotency_keys_read on idempotency_keys for select
    using (namespace_id in (select unnest(folklore_readable())));
create policy idempotency_keys_write on idempotency_keys for insert
    with check (namespace_id in (select unnest(folklore_writable())));
create policy idempotency_keys_drop on idempotency_keys for delete
    using (namespace_id in (select unnest(folklore_writable())));
