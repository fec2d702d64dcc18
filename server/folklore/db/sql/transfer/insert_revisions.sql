-- :links a JSON array. Returns the places of those whose memory exists with a later revision number; a revision
-- that exists stays as it is. A memory with fewer changes than the imported one has no later revisions.
with given as materialized (
    select d.* from jsonb_to_recordset(:links::jsonb) as d (
        place integer, memory_id uuid, revision integer, action text, author text, agent text, changed_at timestamptz,
        reason text, undoes integer, before jsonb
    )
    where exists (select from memories m where m.namespace_id = :namespace::uuid and m.id = d.memory_id and m.revision > d.revision)
),
written as (
    insert into revisions (namespace_id, memory_id, revision, action, author, agent, changed_at, reason, undoes, before)
    select :namespace::uuid, memory_id, revision, action, author, agent, changed_at, reason, undoes, before from given
    order by memory_id, revision
    on conflict (namespace_id, memory_id, revision) do nothing
)
select place from given
