-- name: clear_successor. Clear superseded_by where it names one of :ids, which are erased next. The memories stay
-- superseded.
update memories m set superseded_by = null
where m.namespace_id = :namespace::uuid and m.superseded_by = any(:ids::uuid[])

-- name: close. Forget or supersede memories. :closings is a JSON array with one object for each memory. Separate from
-- memories/update, since no searched column changes and many memories may be closed at once.
update memories m
set forgotten_at = coalesce(c.forgotten_at, m.forgotten_at), superseded_at = coalesce(c.superseded_at, m.superseded_at),
    superseded_by = coalesce(c.superseded_by, m.superseded_by), updated_at = :now::timestamptz,
    revision = m.revision + 1
from jsonb_to_recordset(:closings::jsonb)
    as c (id uuid, forgotten_at timestamptz, superseded_at timestamptz, superseded_by uuid)
where m.namespace_id = :namespace::uuid and m.id = c.id
returning m.id

-- name: delete. Delete memories; see folklore_delete_memories.
select deleted.id from folklore_delete_memories(:namespace::uuid, :ids::uuid[]) as deleted (id)

-- name: derived. The reflections derived from the memories :ids, whose words they repeat.
select distinct m.id
from relations r
join memories m on m.namespace_id = r.namespace_id and m.id = r.from_id
where r.namespace_id = :namespace::uuid and r.to_id = any(:ids::uuid[]) and r.type = 'derived_from'
    and m.trust = 'derived'

-- name: ending. Memories of :namespaces whose id, written without dashes, ends in one of :endings; :tails are the
-- last four characters of each, for the index. Materialized, so that the limit does not make a scan of the whole
-- table look cheap.
with found as materialized (
    select m.id
    from memories m
    where m.namespace_id = any(:namespaces::uuid[]) and right(m.id::text, 4) = any(:tails::text[])
)
select distinct e.ending, f.id
from found f
join unnest(:endings::text[]) as e (ending) on right(replace(f.id::text, '-', ''), length(e.ending)) = e.ending
order by e.ending, f.id desc
limit :fetch::integer

-- name: get
select n.name as namespace,
-- include record
from memories m
join namespaces n on n.id = m.namespace_id
where m.namespace_id = any(:namespaces::uuid[]) and m.id = any(:ids::uuid[])

-- name: in_force
select m.id, m.digest
from memories m
where m.namespace_id = :namespace::uuid and m.live_digest = any(:digests::bytea[])

-- name: insert. Store memories. :drafts is a JSON array with one object for each memory, in the order of digests so
-- that two batches cannot deadlock. A text that a memory in force has is confirmed instead: its quality is reset, and
-- an expired one gets the new expiry. A position that is not given continues the session.
insert into memories (namespace_id, id, {fields}, position, author, agent, created_at, updated_at, digest)
select :namespace::uuid, d.id, {d.fields},
    case when d.session is null then null else coalesce(d.position, least(coalesce((
        select max(m.position)::bigint + 1 from memories m where m.namespace_id = :namespace::uuid and m.session = d.session
    ), 0) + d.step, 2147483647)::integer) end,
    d.author, d.agent, d.created_at, :now::timestamptz, decode(d.digest, 'hex')
from jsonb_to_recordset(:drafts::jsonb) as d (
    id uuid, {field_types}, step integer, author text, agent text, created_at timestamptz, digest text
)
on conflict (namespace_id, live_digest)
do update set confirmed_count = memories.confirmed_count + 1, confirmed_at = :now::timestamptz, quality = null,
    expires_at = case when memories.expires_at <= :now::timestamptz then excluded.expires_at else memories.expires_at end
returning id, digest, (xmax = 0) as is_new, trust = 'derived' as is_derived

-- name: list. One page of memories, which starts after the row (:after_time, :after_id). :by is the time to sort by:
-- updated (the last change), happened (occurrence, else creation), or trending. Trending is the time of the last
-- recall, else of occurrence, and up to 60 days later by importance, so that pages do not depend on the present time;
-- pinned ones first.
with page as (
    select
-- include record
        , case :by::text
            when 'updated' then m.updated_at
            when 'trending' then case when m.pinned then timestamptz '9999-12-31 00:00+00' else least(
                greatest(coalesce(m.occurred_at, m.created_at), m.last_recalled_at)
                    + coalesce(m.importance, 0.5) * interval '60 days',
                timestamptz '9999-12-30 00:00+00') end
            else coalesce(m.occurred_at, m.created_at)
        end as sorted_by
    from (
-- include state
        where o.namespace_id = any(:namespaces::uuid[])
    ) m
    where
-- include visible
)
select * from page
where :after_time::timestamptz is null
    or (:ascending::boolean and (sorted_by, id) > (:after_time::timestamptz, :after_id::uuid))
    or (not :ascending::boolean and (sorted_by, id) < (:after_time::timestamptz, :after_id::uuid))
order by
    case when :ascending::boolean then sorted_by end asc,
    case when :ascending::boolean then id end asc,
    sorted_by desc, id desc
limit :fetch::integer

-- name: locate. The namespaces, among :namespaces, that hold each of the memories :ids; :unforgotten leaves out
-- forgotten memories.
select m.namespace_id, m.id
from memories m
where m.namespace_id = any(:namespaces::uuid[]) and m.id = any(:ids::uuid[])
    and (not :unforgotten::boolean or m.forgotten_at is null)
order by m.id, m.namespace_id

-- name: match. The first :fetch memories by id that the filters let through, among :shown if given.
select m.id
from (
-- include state
    where o.namespace_id = :namespace::uuid
) m
where
-- include visible
    and (:shown::uuid[] is null or m.id = any(:shown::uuid[]))
order by m.id
limit :fetch::integer

-- name: restore_tags. Give each of the memories :ids the tags that its revision of the same place in :revisions kept.
update memories m
set tags = array(select jsonb_array_elements_text(r.before -> 'tags')), updated_at = :now::timestamptz,
    revision = m.revision + 1
from unnest(:ids::uuid[], :revisions::integer[]) as given (id, revision)
join revisions r on r.namespace_id = :namespace::uuid and r.memory_id = given.id and r.revision = given.revision
where m.namespace_id = :namespace::uuid and m.id = given.id

-- name: retag. Rename tags of the memories :ids: each of :old becomes that of :new in its place. A tag is kept once,
-- where it comes first.
update memories m
set tags = array(
        select renamed.tag
        from (
            select coalesce(given.new, held.tag) as tag, min(held.place) as place
            from unnest(m.tags) with ordinality as held (tag, place)
            left join unnest(:old::text[], :new::text[]) as given (old, new) on given.old = held.tag
            group by 1
        ) renamed
        order by renamed.place
    ),
    updated_at = :now::timestamptz, revision = m.revision + 1
where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])

-- name: states. The state of the memories :ids before a change; with :whole also their columns as JSON.
select m.id, m.revision, m.forgotten_at, m.superseded_at, m.superseded_by,
    case when :whole::boolean then
-- include changeable
    end as held
from memories m
where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])

-- name: superseded_by. The memories that return when the memories :leaving are forgotten or erased: those that one of
-- them supersedes, and, where such a memory is forgotten or leaves too, those before it. :leading are those of
-- :leaving that are in force. A memory whose text another one has by now stays superseded.
with recursive hidden as (
    select m.id, m.forgotten_at, m.digest, m.superseded_by
    from memories m
    where m.namespace_id = :namespace::uuid and m.superseded_by = any(:leading::uuid[])
    union
    select m.id, m.forgotten_at, m.digest, m.superseded_by
    from hidden
    join memories m on m.namespace_id = :namespace::uuid and m.superseded_by = hidden.id
    where hidden.forgotten_at is not null or hidden.id = any(:leaving::uuid[])
)
select distinct on (hidden.digest) hidden.id, hidden.superseded_by
from hidden
where hidden.forgotten_at is null and hidden.id <> all(:leaving::uuid[]) and not exists (
    select from memories m
    where m.namespace_id = :namespace::uuid and m.live_digest = hidden.digest and m.id <> all(:leaving::uuid[])
)
order by hidden.digest, hidden.id desc

-- name: tagged. The memories with the tag :tag or one below it, unless forgotten, each with these tags.
select m.id, array(
        select tag from unnest(m.tags) as tag
        where tag = :tag::text or starts_with(tag, :tag::text || ':') or starts_with(tag, :tag::text || '/')
    ) as held
from memories m
where m.namespace_id = :namespace::uuid and m.tag_prefixes @> array[:tag::text] and m.forgotten_at is null
order by m.id

-- name: update. Change memories. :changes is a JSON array with one object for each memory: its id, the new values of
-- changed columns under `fields`, and the digest (hexadecimal) of a new text. A memory that moves to another session
-- goes to its end.
update memories m
set {n.field_updates},
    position = case
        when n.session is null then null
        when c.fields ? 'position' then n.position
        when n.session is not distinct from o.session then o.position
        else coalesce((
            select max(s.position) + 1 from memories s where s.namespace_id = :namespace::uuid and s.session = n.session
        ), 0) end,
    forgotten_at = n.forgotten_at, superseded_at = n.superseded_at, superseded_by = n.superseded_by,
    digest = coalesce(decode(c.digest, 'hex'), o.digest),
    -- Quality was computed for the former text.
    quality = case when c.digest is null then o.quality end,
    -- A reflection with another text is no longer derived from its members.
    trust = case when c.digest is not null and o.trust = 'derived' then 'stated' else o.trust end,
    updated_at = :now::timestamptz, revision = o.revision + 1
from jsonb_to_recordset(:changes::jsonb) as c (id uuid, digest text, fields jsonb)
join memories o on o.namespace_id = :namespace::uuid and o.id = c.id
cross join lateral jsonb_populate_record(o, c.fields) as n
where m.namespace_id = :namespace::uuid and m.id = c.id
returning m.id, m.revision
