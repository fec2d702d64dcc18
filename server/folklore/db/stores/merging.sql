-- name: audit
insert into audit (namespace_id, id, at, principal, token_id, agent, action, outcome, amount, ids, detail)
select :into::uuid, a.id, a.at, a.principal, a.token_id, a.agent, a.action, a.outcome, a.amount, a.ids, a.detail
from audit a where a.namespace_id = :namespace::uuid

-- name: clear_successors. Clear superseded_by where it names a memory of another namespace. The memories stay
-- superseded.
update memories m set superseded_by = null
where m.namespace_id = :namespace::uuid and m.superseded_by is not null and (
    select s.id from memories s where s.namespace_id = :namespace::uuid and s.id = m.superseded_by
) is null

-- name: embeddings
insert into embeddings (namespace_id, model_id, memory_id, passage, passages, begins, ends, length, vector, cues)
select :into::uuid, e.model_id, e.memory_id, e.passage, e.passages, e.begins, e.ends, e.length, e.vector, e.cues
from embeddings e
where e.namespace_id = :namespace::uuid and e.model_id = any(array(select id from models))
    and e.memory_id = any(:ids::uuid[])

-- name: injections
insert into injections (
    namespace_id, memory_id, injection_id, rank, caller, session, event, injected_at, heading, note, tokens, used_at,
    used, dropped_at, whole
)
select :into::uuid, i.memory_id, i.injection_id, i.rank, i.caller, i.session, i.event, i.injected_at, i.heading, i.note,
    i.tokens, i.used_at, i.used, i.dropped_at, i.whole
from injections i where i.namespace_id = :namespace::uuid and i.memory_id = any(:ids::uuid[])

-- name: keys. A key that :into has too keeps its meaning there.
insert into idempotency_keys (namespace_id, key, memory_id, request)
select :into::uuid, k.key, k.memory_id, k.request from idempotency_keys k
where k.namespace_id = :namespace::uuid and k.memory_id = any(:ids::uuid[])
on conflict (namespace_id, key) do nothing

-- name: memories. Insert the memories :ids under the namespace :into. Each gets the next revision number. Those of
-- :duplicates, which are superseded already, get the memory of the same index in :of as their successor. A session
-- that both namespaces have continues there (:sessions and :positions belong together).
insert into memories (
    namespace_id, id, {fields}, position, author, agent, quality, trust, created_at, updated_at, forgotten_at,
    superseded_at, superseded_by, last_recalled_at, recall_count, confirmed_count, confirmed_at, revision, digest,
    changed_by, changed_at
)
select :into::uuid, m.id, {m.fields}, case
        when m.position is not null then least(m.position::bigint + coalesce(shared.position, 0), 2147483647)::integer
    end,
    m.author, m.agent, m.quality, m.trust, m.created_at, m.updated_at, m.forgotten_at,
    m.superseded_at, coalesce(m.superseded_by, duplicate.successor), m.last_recalled_at, m.recall_count,
    m.confirmed_count, m.confirmed_at, m.revision + 1, m.digest, m.changed_by, m.changed_at
from memories m
left join unnest(:duplicates::uuid[], :of::uuid[]) as duplicate (id, successor) on duplicate.id = m.id
left join unnest(:sessions::text[], :positions::integer[]) as shared (session, position) on shared.session = m.session
where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
order by m.id

-- name: moved. The memories that moved here at :at for the reason :reason, and are still here.
select r.memory_id as id from revisions r
where r.namespace_id = :namespace::uuid and r.action = 'move' and r.reason = :reason::text
    and r.changed_at = :at::timestamptz
order by r.memory_id

-- name: plan. The memories of a namespace (:ids null: all), before they move to :into: `state` is null for those that
-- can. Others are there under the same id: "known" with the same text, in force if this one is, else "differing".
-- `duplicate` is a memory in force there that has the text of one in force here. Two namespaces may be on two nodes of a
-- cluster: what they share is read first.
with moving as materialized (
    select m.id, m.digest, m.live_digest from memories m
    where m.namespace_id = :namespace::uuid and (:ids::uuid[] is null or m.id = any(:ids::uuid[]))
), there as materialized (
    select m.id, m.digest, m.live_digest from memories m
    where m.namespace_id = :into::uuid and (m.id = any(array(select moving.id from moving))
        or m.live_digest = any(array(select moving.live_digest from moving)))
)
select m.id, case
        when same.id is null then null
        when same.digest = m.digest and (m.live_digest is null or same.live_digest is not null) then 'known'
        else 'differing'
    end as state, text.id as duplicate
from moving m
left join there same on same.id = m.id
left join there text on text.live_digest = m.live_digest
order by m.id

-- name: relations. The relations of the memories :ids, which are in :into by now, to memories that are there too.
with joined as materialized (
    select f.* from relations f where f.namespace_id = :namespace::uuid and f.from_id = any(:ids::uuid[])
    union
    select t.* from relations t where t.namespace_id = :namespace::uuid and t.to_id = any(:ids::uuid[])
), there as materialized (
    select m.id from memories m where m.namespace_id = :into::uuid
        and (m.id = any(array(select joined.from_id from joined)) or m.id = any(array(select joined.to_id from joined)))
)
insert into relations (namespace_id, from_id, type, to_id, strength, author, created_at)
select :into::uuid, r.from_id, r.type, r.to_id, r.strength, r.author, r.created_at from joined r
where r.from_id in (select there.id from there) and r.to_id in (select there.id from there)
on conflict (namespace_id, from_id, type, to_id) do nothing

-- name: revisions
insert into revisions (namespace_id, memory_id, revision, action, author, agent, changed_at, reason, undoes, before)
select :into::uuid, r.memory_id, r.revision, r.action, r.author, r.agent, r.changed_at, r.reason, r.undoes, r.before
from revisions r where r.namespace_id = :namespace::uuid and r.memory_id = any(:ids::uuid[])

-- name: sessions. The sessions that both namespaces have, and the position that follows the last one in :into.
select held.session, least(max(held.position)::bigint + 1, 2147483647)::integer as position from memories held
where held.namespace_id = :into::uuid and held.session in (
    select moving.session from memories moving where moving.namespace_id = :namespace::uuid and moving.session is not null
)
group by held.session

-- name: superseded. The memories that were superseded at :at for the reason :reason, and still are.
select m.id, m.digest, r.revision
from revisions r
join memories m on m.namespace_id = :namespace::uuid and m.id = r.memory_id and m.superseded_at = :at::timestamptz
where r.namespace_id = :namespace::uuid and r.action = 'supersede' and r.reason = :reason::text
    and r.changed_at = :at::timestamptz
order by m.id

-- name: usage
insert into usage (namespace_id, memory_id, answer_id, used_at, rank, score, query, session, caller)
select :into::uuid, u.memory_id, u.answer_id, u.used_at, u.rank, u.score, u.query, u.session, u.caller
from usage u where u.namespace_id = :namespace::uuid and u.memory_id = any(:ids::uuid[])
