-- name: adopt. Make stated memories of those reflections among :ids whose members have changed: recall hid them, and
-- a caller has just stored the same text.
update memories m set trust = 'stated'
where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
    and not (true
-- include derived
    )

-- name: existing. Every reflection, forgotten ones too, since a reflection that a person forgot is not made again.
-- `whole`: no member was changed, superseded, forgotten or erased since.
select m.id, coalesce((
        select k.key from idempotency_keys k
        where k.namespace_id = m.namespace_id and k.memory_id = m.id and k.request = m.digest
        order by k.key collate "C" limit 1
    ), '') as key, m.forgotten_at is not null as forgotten,
    coalesce(m.metadata->>'members', '') = (
        select count(*)::text
        from relations r
        join memories o on o.namespace_id = r.namespace_id and o.id = r.to_id
        where r.namespace_id = m.namespace_id and r.from_id = m.id and r.type = 'derived_from'
            and o.forgotten_at is null and o.superseded_at is null and o.updated_at <= m.updated_at
    ) as whole
from memories m where m.namespace_id = :namespace::uuid and m.trust = 'derived' order by m.id

-- name: fingerprint
select concat_ws(' ', count(*), extract(epoch from max(m.updated_at)), count(m.forgotten_at), count(m.superseded_at),
    count(e.memory_id)) as fingerprint
from memories m
left join embeddings e on e.namespace_id = m.namespace_id and e.model_id = :model::uuid and e.memory_id = m.id
    and e.passage = 0
where m.namespace_id = :namespace::uuid and m.trust <> 'derived'

-- name: link
insert into relations (namespace_id, from_id, type, to_id, strength, author, created_at)
select :namespace::uuid, given.reflection, 'derived_from', given.member, 1, :author::text, :now::timestamptz
from unnest(:reflections::uuid[], :members::uuid[]) as given (reflection, member)
on conflict do nothing

-- name: lock. Lock, of the members :ids with their :digests, those whose text is unchanged and that are still in
-- force.
select m.id
from unnest(:ids::uuid[], :digests::bytea[]) as given (id, digest)
join memories m on m.namespace_id = :namespace::uuid and m.id = given.id and m.digest = given.digest
where m.namespace_id = :namespace::uuid and m.forgotten_at is null and m.superseded_at is null and m.expires_at is null
order by m.id
for share of m skip locked

-- name: members
select m.id, m.content, m.language, coalesce(m.occurred_at, m.created_at) as happened from memories m
where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])

-- name: sources. The newest :most memories that a reflection may be made from: in force, without expiry, no
-- reflections themselves; with the embeddings of their whole texts in :model (raw halfvec bytes). Ids sort by time of
-- creation.
select m.id, m.digest, halfvec_send(e.vector) as vector
from memories m
join embeddings e on e.namespace_id = m.namespace_id and e.model_id = :model::uuid and e.memory_id = m.id
    and e.passage = 0
where m.namespace_id = :namespace::uuid and m.forgotten_at is null and m.superseded_at is null
    and m.expires_at is null and m.trust <> 'derived'
order by m.id desc limit :most::integer
