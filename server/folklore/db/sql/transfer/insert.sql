-- Inserts the memories of transfer_columns with their idempotency keys and returns their ids. A memory whose id, live
-- text or idempotency key exists is left out. superseded_by follows in transfer/link_successors, since its target may
-- be imported later. confirmed_at is the time of the import: old memories are not unused on their first day here.
with imported as materialized (
-- include transfer_columns
),
written as (
    insert into memories (
        namespace_id, id, {fields}, position, author, agent, quality, trust, created_at, updated_at, forgotten_at,
        superseded_at, last_recalled_at, recall_count, confirmed_count, confirmed_at, revision, digest
    )
    select :namespace::uuid, d.id, {d.fields},
        case when d.session is null then null else coalesce(d.position, coalesce((
            select max(m.position) + 1 from memories m where m.namespace_id = :namespace::uuid and m.session = d.session
        ), 0) + d.step) end,
        d.author, d.agent, d.quality, d.trust, d.created_at, d.updated_at, d.forgotten_at, d.superseded_at,
        d.last_recalled_at, d.recall_count, d.confirmed_count, :now::timestamptz, d.revision, decode(d.digest, 'hex')
    from imported d
    where not exists (
        select from idempotency_keys k where k.namespace_id = :namespace::uuid and k.key = d.idempotency_key
    )
    on conflict do nothing
    returning id
),
keyed as (
    insert into idempotency_keys (namespace_id, key, memory_id, request)
    select :namespace::uuid, d.idempotency_key, d.id, decode(d.digest, 'hex')
    from imported d
    join written on written.id = d.id
    where d.idempotency_key is not null
    order by d.idempotency_key collate "C"
)
select id from written
