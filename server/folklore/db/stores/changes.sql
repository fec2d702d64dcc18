-- name: add_language. Add a language to the namespace, so that queries are read in it too.
update namespaces set languages = array(select distinct unnest(languages || :language::text) order by 1)
where id = :namespace::uuid and not languages @> array[:language::text]

-- name: insert. Store memories. :drafts is a JSON array with one object for each memory, in the order of digests so
-- that two batches cannot deadlock. A text that a memory in force has is confirmed instead: its quality is reset, and
-- an expired one gets the new expiry. A position that is not given continues the session.
insert into memories (namespace_id, id, {fields}, position, author, agent, created_at, updated_at, digest)
select
-- include space
    , d.id, {d.fields},
    case when d.session is null then null else coalesce(d.position, least(coalesce((
        select max(m.position)::bigint + 1 from memories m where m.namespace_id = :namespace::uuid and m.session = d.session
    ), 0) + d.step, 2147483647)::integer) end,
    d.author, d.agent, d.created_at, :now::timestamptz, decode(d.digest, 'hex')
from jsonb_to_recordset(:drafts::jsonb) as d (
    id uuid, {field_types}, step integer, author text, agent text, created_at timestamptz, digest text
)
-- include space_row
on conflict (namespace_id, live_digest)
do update set confirmed_count = memories.confirmed_count + 1, confirmed_at = excluded.updated_at,
    quality = null, expires_at = case when memories.expires_at <= excluded.updated_at then excluded.expires_at else memories.expires_at end
returning id, digest, (xmax = 0) as is_new, trust = 'derived' as is_derived

-- name: states. The state of the memories :ids before a change; with :whole also their columns as JSON.
select m.id, m.revision, m.author, m.forgotten_at, m.superseded_at, m.superseded_by,
    case when :whole::boolean then
-- include changeable
    end as held
from memories m where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])

-- name: superseded_by. The memories that return when the memories :leaving are forgotten or erased: those that one of
-- them supersedes, and, where such a memory is forgotten or leaves too, those before it. :leading are those of
-- :leaving that are in force. A memory whose text another one has by now stays superseded.
with recursive hidden as (
    select m.id, m.forgotten_at, m.digest, m.superseded_by from memories m
    where m.namespace_id = :namespace::uuid and m.superseded_by = any(:leading::uuid[])
    union
    select m.id, m.forgotten_at, m.digest, m.superseded_by
    from hidden
    join memories m on m.namespace_id = :namespace::uuid and m.superseded_by = hidden.id
    where hidden.forgotten_at is not null or hidden.id = any(:leaving::uuid[])
)
select distinct on (hidden.digest) hidden.id, hidden.superseded_by from hidden
where hidden.forgotten_at is null and hidden.id <> all(:leaving::uuid[]) and not exists (
    select from memories m
    where m.namespace_id = :namespace::uuid and m.live_digest = hidden.digest and m.id <> all(:leaving::uuid[])
)
order by hidden.digest, hidden.id desc

-- name: in_force
select m.id, m.digest from memories m
where m.namespace_id = :namespace::uuid and m.live_digest = any(:digests::bytea[])

-- name: update. Change memories. :changes is a JSON array with one object for each memory: its id, the new values of
-- changed columns under `fields`, and the digest (hexadecimal) of a new text. A memory that moves to another session
-- goes to its end. The ids are named once more, as an array: the planner, which takes a namespace for small, would read
-- all of it.
update memories m
set {n.field_updates},
    position = case
        when n.session is null then null
        when c.fields ? 'position' then n.position
        when n.session is not distinct from o.session then o.position
        else least(coalesce((
            select max(s.position)::bigint + 1 from memories s
            where s.namespace_id = :namespace::uuid and s.session = n.session
        ), 0), 2147483647)::integer end,
    forgotten_at = n.forgotten_at, superseded_at = n.superseded_at, superseded_by = n.superseded_by,
    changed_by = n.changed_by, changed_at = n.changed_at,
    digest = coalesce(decode(c.digest, 'hex'), o.digest),
    -- Quality was computed for the former text.
    quality = case when c.digest is null then o.quality end,
    -- A reflection with another text is no longer derived from its members.
    trust = case when c.digest is not null and o.trust = 'derived' then 'stated' else o.trust end,
    updated_at = :now::timestamptz, revision = o.revision + 1
from jsonb_to_recordset(:changes::jsonb) as c (id uuid, digest text, fields jsonb)
join memories o on o.namespace_id = :namespace::uuid and o.id = c.id
    and o.id = any(array(select id from jsonb_to_recordset(:changes::jsonb) as named (id uuid)))
cross join lateral jsonb_populate_record(o, c.fields) as n
where m.namespace_id = :namespace::uuid and m.id = o.id
    and m.id = any(array(select id from jsonb_to_recordset(:changes::jsonb) as named (id uuid)))
returning m.id, m.revision

-- name: learn. Write cues of a memory of which some were learned. Its revision and the time of its last change stay.
update memories m set cues = :cues::text[], learned_cues = :learned::text[]
where m.namespace_id = :namespace::uuid and m.id = :id::uuid
returning m.id

-- name: close. Forget or supersede memories. :closings is a JSON array with one object for each memory. Separate from
-- changes/update, since no searched column changes and many memories may be closed at once.
update memories m
set forgotten_at = coalesce(c.forgotten_at, m.forgotten_at), superseded_at = coalesce(c.superseded_at, m.superseded_at),
    superseded_by = coalesce(c.superseded_by, m.superseded_by), updated_at = :now::timestamptz,
    revision = m.revision + 1
from jsonb_to_recordset(:closings::jsonb)
    as c (id uuid, forgotten_at timestamptz, superseded_at timestamptz, superseded_by uuid)
where m.namespace_id = :namespace::uuid and m.id = c.id
    and m.id = any(array(select id from jsonb_to_recordset(:closings::jsonb) as named (id uuid)))  -- as changes/update
returning m.id

-- name: tagged. The memories with the tag :tag or one below it, unless forgotten, each with these tags.
select m.id, array(
        select tag from unnest(m.tags) as tag
        where tag = :tag::text or starts_with(tag, :tag::text || ':') or starts_with(tag, :tag::text || '/')
    ) as held
from memories m
where m.namespace_id = :namespace::uuid and m.tag_prefixes @> array[:tag::text] and m.forgotten_at is null
order by m.id

-- name: retag. Rename tags of the memories :ids: each of :old becomes that of :new in its place. A tag is kept once,
-- where it comes first.
update memories m
set tags = array(
        select renamed.tag
        from (
            select coalesce(given.new, held.tag) as tag, min(held.index) as index
            from unnest(m.tags) with ordinality as held (tag, index)
            left join unnest(:old::text[], :new::text[]) as given (old, new) on given.old = held.tag
            group by 1
        ) renamed
        order by renamed.index
    ),
    updated_at = :now::timestamptz, revision = m.revision + 1
where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])

-- name: restore_tags. Give each of the memories :ids the tags that its revision of the same index in :revisions kept.
update memories m
set tags = array(select jsonb_array_elements_text(r.before -> 'tags')), updated_at = :now::timestamptz,
    revision = m.revision + 1
from unnest(:ids::uuid[], :revisions::integer[]) as given (id, revision)
join revisions r on r.namespace_id = :namespace::uuid and r.memory_id = given.id and r.revision = given.revision
where m.namespace_id = :namespace::uuid and m.id = given.id

-- name: match. The first :fetch memories by id that the filters let through, among :shown if given.
select m.id
from (
-- include state
    where o.namespace_id = :namespace::uuid
) m
where
-- include visible
    and (:shown::uuid[] is null or m.id = any(:shown::uuid[]))
order by m.id limit :fetch::integer

-- name: find_keys. The idempotency keys among :keys that were used: the memory that answered, and the digest of the
-- request.
select k.key, m.id, m.forgotten_at is not null as forgotten, k.request
from idempotency_keys k
join memories m on m.namespace_id = :namespace::uuid and m.id = k.memory_id
where k.namespace_id = :namespace::uuid and k.key = any(:keys::text[])

-- name: insert_keys. Record which memory answered a request under a key; :keys, :ids and :requests (hexadecimal)
-- belong together. In the order of keys, so that two batches cannot deadlock.
insert into idempotency_keys (namespace_id, key, memory_id, request)
select :namespace::uuid, g.key, g.id, decode(g.request, 'hex')
from unnest(:keys::text[], :ids::uuid[], :requests::text[]) as g (key, id, request) order by g.key collate "C"
returning namespace_id  -- with row-level security a cluster would copy the rows, which is not allowed

-- name: release_keys. Release those of :keys whose memory is forgotten; see folklore_release_keys.
select folklore_release_keys(:namespace::uuid, :keys::text[])

-- name: relate. Write relations, :relations a JSON array; an existing one gets the new strength. Left out, and not
-- returned, are those of which one memory does not exist here or is forgotten; but a forgotten memory may supersede,
-- since an undo writes again what it superseded before.
insert into relations (namespace_id, from_id, type, to_id, strength, author, created_at)
select :namespace::uuid, d.from_id, d.type, d.to_id, d.strength, :author::text, :now::timestamptz
from jsonb_to_recordset(:relations::jsonb) as d (from_id uuid, type text, to_id uuid, strength real)
where exists (
        select from memories f where f.namespace_id = :namespace::uuid and f.id = d.from_id
            and f.id = any(array(select from_id from jsonb_to_recordset(:relations::jsonb) as named (from_id uuid)))
            and (f.forgotten_at is null or d.type = 'supersedes'))
    and d.to_id = any(array(
        select t.id from memories t where t.namespace_id = :namespace::uuid and t.forgotten_at is null
            and t.id = any(array(select to_id from jsonb_to_recordset(:relations::jsonb) as named (to_id uuid)))))
order by d.from_id, d.type collate "C", d.to_id
on conflict (namespace_id, from_id, type, to_id) do update set strength = excluded.strength
returning from_id, type, to_id, (xmax = 0) as is_new

-- name: unrelate. Delete relations, :relations a JSON array; see folklore_delete_relations.
select deleted.from_id, deleted.type, deleted.to_id
from folklore_delete_relations(:namespace::uuid, :relations::jsonb) as deleted

-- name: copy_relations. Copy the relations of the memories :ids to the memory :to, in its place; not those between
-- :ids and :to, and not those that say what superseded what. A relation that exists stays as it is.
insert into relations (namespace_id, from_id, type, to_id, strength, author, created_at)
select :namespace::uuid, copied.from_id, copied.type, copied.to_id, max(copied.strength), :author::text,
    :now::timestamptz
from (
    select case when r.from_id = any(:ids::uuid[]) then :to::uuid else r.from_id end as from_id, r.type,
        case when r.to_id = any(:ids::uuid[]) then :to::uuid else r.to_id end as to_id, r.strength
    from (
        select f.* from relations f where f.namespace_id = :namespace::uuid and f.from_id = any(:ids::uuid[])
        union
        select t.* from relations t where t.namespace_id = :namespace::uuid and t.to_id = any(:ids::uuid[])
    ) r
    where r.type <> 'supersedes'
) copied
where copied.from_id <> copied.to_id
group by copied.from_id, copied.type, copied.to_id
order by copied.from_id, copied.type collate "C", copied.to_id
on conflict (namespace_id, from_id, type, to_id) do nothing returning from_id, type, to_id

-- name: unrelate_since. Delete the relations of the memory :id that :author wrote at :at; see
-- folklore_delete_relations.
select deleted.from_id, deleted.type, deleted.to_id
from folklore_delete_relations(:namespace::uuid, (
    select coalesce(jsonb_agg(jsonb_build_object('from_id', r.from_id, 'type', r.type, 'to_id', r.to_id)), '[]')
    from (
        select f.from_id, f.type, f.to_id from relations f
        where f.namespace_id = :namespace::uuid and f.from_id = :id::uuid and f.author = :author::text
            and f.created_at = :at::timestamptz
        union
        select t.from_id, t.type, t.to_id from relations t
        where t.namespace_id = :namespace::uuid and t.to_id = :id::uuid and t.author = :author::text
            and t.created_at = :at::timestamptz
    ) r
)) as deleted

-- name: relations. The relations of the memories :ids in both directions, strongest first, without those to forgotten
-- memories. Each direction has its own index. Forgotten memories are excluded by a subquery for one value: for not
-- exists() the planner would read all forgotten memories of all namespaces.
select r.namespace_id, r.from_id, r.type, r.to_id, r.strength, r.author, r.created_at
from (
    select f.* from relations f where f.namespace_id = any(:namespaces::uuid[]) and f.from_id = any(:ids::uuid[])
    union
    select t.* from relations t where t.namespace_id = any(:namespaces::uuid[]) and t.to_id = any(:ids::uuid[])
) r
where (
        select m.id from memories m
        where m.namespace_id = r.namespace_id and m.id in (r.from_id, r.to_id)
            and m.forgotten_at is not null and m.id <> all(:ids::uuid[])
        order by m.id limit 1
    ) is null
order by r.strength desc, r.type, r.from_id, r.to_id limit :fetch::integer

-- name: record. Write a revision for each of the memories :ids, with the present values of the columns :fields,
-- before they change. :reasons and :undoes are JSON objects by id.
insert into revisions (namespace_id, memory_id, revision, action, author, agent, changed_at, reason, undoes, before)
select m.namespace_id, m.id, m.revision, :action::text, :author::text, :agent::text, :now::timestamptz,
    :reasons::jsonb ->> m.id::text, (:undoes::jsonb ->> m.id::text)::integer,
    (select coalesce(jsonb_object_agg(held.key, held.value), '{}') from jsonb_each(
-- include changeable
    ) as held where held.key = any(:fields::text[]))
from memories m where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])

-- name: signature. Who changed the text of a memory last, and when, before its revision :revision, of changes that were
-- not undone before; null for both if the author wrote its content last. For revisions of former versions, which did
-- not keep it.
select case when r.author <> m.author then r.author end as changed_by,
    case when r.author <> m.author then r.changed_at end as changed_at
from revisions r
join memories m on m.namespace_id = r.namespace_id and m.id = r.memory_id
where r.namespace_id = :namespace::uuid and r.memory_id = :id::uuid and r.revision < :revision::integer
    and r.action <> 'undo' and r.before ?| :texts::text[] and (r.author <> m.author or r.before ? 'content')
    and not exists (
        select from revisions u
        where u.namespace_id = :namespace::uuid and u.memory_id = :id::uuid and u.undoes = r.revision
            and u.revision < :revision::integer
    )
order by r.revision desc limit 1

-- name: restored. The revisions by which forgetting :successor at :at restored what it had superseded, itself or
-- through memories that are forgotten; of memories that did not change since.
with recursive chain as (
    select :successor::uuid as id
    union
    select m.id
    from chain
    join memories m on m.namespace_id = :namespace::uuid and m.superseded_by = chain.id
)
select r.memory_id, r.revision, r.action, r.author, r.agent, r.changed_at, r.reason, r.undoes, r.before
from revisions r
join memories m on m.namespace_id = r.namespace_id and m.id = r.memory_id
where r.namespace_id = :namespace::uuid and r.changed_at = :at::timestamptz and r.action = 'restore'
    and (r.before ->> 'superseded_by')::uuid in (select id from chain)
    and m.namespace_id = :namespace::uuid and m.revision = r.revision + 1
order by r.memory_id

-- name: merged_at. The memories that a merge at :at superseded, whether or not that was undone since.
select r.memory_id as id from revisions r
where r.namespace_id = :namespace::uuid and r.changed_at = :at::timestamptz
    and r.action = 'supersede' and r.reason = 'merged'
order by r.memory_id

-- name: history
select r.memory_id, r.revision, r.action, r.author, r.agent, r.changed_at, r.reason, r.undoes, r.before
from revisions r where r.namespace_id = :namespace::uuid and r.memory_id = :id::uuid order by r.revision desc

-- name: retagged. The memories that the last call of a renaming of tags changed, named by its :reason, unless that
-- was undone since.
with renamed as materialized (
    select r.memory_id, r.revision, r.changed_at from revisions r
    where r.namespace_id = :namespace::uuid and r.action = 'retag' and r.reason = :reason::text
        and not exists (
            select from revisions u
            where u.namespace_id = :namespace::uuid and u.memory_id = r.memory_id and u.undoes = r.revision
        )
)
select m.id, renamed.revision, m.revision = renamed.revision + 1 as unchanged
from renamed
join memories m on m.namespace_id = :namespace::uuid and m.id = renamed.memory_id
where renamed.changed_at = (select max(changed_at) from renamed) and m.forgotten_at is null
order by m.id

-- name: count_revisions
select r.namespace_id, r.memory_id, count(*) as revisions from revisions r
where r.namespace_id = any(:namespaces::uuid[]) and r.memory_id = any(:ids::uuid[])
group by r.namespace_id, r.memory_id

-- name: superseded_at. The memories that the memory :by superseded at :at for the reason :reason, unless that was
-- undone since.
select m.id, m.digest, r.revision
from memories m
join revisions r on r.namespace_id = :namespace::uuid and r.memory_id = m.id
where m.namespace_id = :namespace::uuid and m.superseded_by = :by::uuid and r.action = 'supersede'
    and r.reason = :reason::text and r.changed_at = :at::timestamptz
    and not exists (
        select from revisions u where u.namespace_id = :namespace::uuid and u.memory_id = m.id and u.undoes = r.revision
    )
order by m.id
