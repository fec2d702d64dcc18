-- :revisions a JSON array. Those whose memory is here come back, whether they were here before or not.
with given as materialized (
    select d.* from jsonb_to_recordset(:revisions::jsonb) as d (
        place integer, memory_id uuid, revision integer, action text, author text, agent text, changed_at timestamptz,
        reason text, undoes integer, before jsonb
    )
    where exists (select from memories m where m.namespace_id = :namespace::uuid and m.id = d.memory_id)
),
written as (
    insert into revisions (namespace_id, memory_id, revision, action, author, agent, changed_at, reason, undoes, before)
    select :namespace::uuid, memory_id, revision, action, author, agent, changed_at, reason, undoes, before from given
    order by memory_id, revision
    on conflict (namespace_id, memory_id, revision) do nothing
)
select place from given
