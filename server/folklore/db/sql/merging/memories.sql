-- Insert the memories :ids under the namespace :into. Each gets the next revision number. Those of :duplicates, which
-- are superseded already, get the memory of the same place in :of as their successor. A session that both namespaces
-- have continues there (:sessions and :positions belong together).
insert into memories (
    namespace_id, id, {fields}, position, author, agent, quality, trust, created_at, updated_at, forgotten_at,
    superseded_at, superseded_by, last_recalled_at, recall_count, confirmed_count, confirmed_at, revision, digest
)
select :into::uuid, m.id, {m.fields}, case
        when m.position is not null then least(m.position::bigint + coalesce(shared.position, 0), 2147483647)::integer
    end,
    m.author, m.agent, m.quality, m.trust, m.created_at, m.updated_at, m.forgotten_at,
    m.superseded_at, coalesce(m.superseded_by, duplicate.successor), m.last_recalled_at, m.recall_count,
    m.confirmed_count, m.confirmed_at, m.revision + 1, m.digest
from memories m
left join unnest(:duplicates::uuid[], :of::uuid[]) as duplicate (id, successor) on duplicate.id = m.id
left join unnest(:sessions::text[], :positions::integer[]) as shared (session, position) on shared.session = m.session
where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
order by m.id
