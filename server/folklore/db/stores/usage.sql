-- name: count
select count(*) as count from usage u where u.namespace_id = :namespace::uuid and u.used_at < :before::timestamptz

-- name: delete
with old as materialized (
    select u.memory_id, u.answer_id from usage u
    where u.namespace_id = :namespace::uuid and u.used_at < :before::timestamptz
    order by u.used_at limit :batch::integer
    for update skip locked
)
delete from usage u using old
where u.namespace_id = :namespace::uuid and u.memory_id = old.memory_id and u.answer_id = old.answer_id
returning u.memory_id

-- name: record. :used is a JSON array with one object for each memory that a caller used, all of one namespace. Log
-- those in an answer and count them on their memories; record the first use of what hooks had injected. Memories that
-- another transaction has locked are skipped and not returned: waiting here could deadlock. What is logged already is
-- not counted again.
with given as materialized (
    select * from jsonb_to_recordset(:used::jsonb) as g (
        memory uuid, answer uuid, at timestamptz, rank smallint, score real, query text, session text, caller text,
        used text
    )
),
held as materialized (
    select m.namespace_id, m.id from memories m
    where m.namespace_id = :namespace::uuid and m.id = any(array(select memory from given))
    order by m.id
    for no key update skip locked
),
logged as (
    insert into usage (namespace_id, memory_id, answer_id, used_at, rank, score, query, session, caller)
    select :namespace::uuid, given.memory, given.answer, given.at, given.rank, given.score,
        decode(given.query, 'hex'), given.session, given.caller
    from given
    join held on held.id = given.memory
    where given.answer is not null
    on conflict do nothing returning namespace_id, memory_id, used_at
),
counted as (
    update memories m
    set recall_count = m.recall_count + seen.times, last_recalled_at = greatest(m.last_recalled_at, seen.latest)
    from (
        select namespace_id, memory_id, count(*)::integer as times, max(used_at) as latest from logged
        group by namespace_id, memory_id
    ) seen
    where m.namespace_id = :namespace::uuid and m.id = seen.memory_id
),
injected as materialized (
    select i.namespace_id, i.memory_id, i.injection_id, i.caller from injections i
    where i.namespace_id = :namespace::uuid and i.memory_id = any(array(select id from held)) and i.used_at is null
        and exists (
            select from given
            where given.memory = i.memory_id and given.caller = i.caller and given.at > i.injected_at
                and given.at <= i.injected_at + :within::interval
        )
    for update skip locked
),
used as (
    update injections i set used_at = first.at, used = first.used
    from injected
    join (select distinct on (memory, caller) memory, caller, at, used from given order by memory, caller, at) first
        on first.memory = injected.memory_id and first.caller = injected.caller
    where i.namespace_id = :namespace::uuid and i.memory_id = injected.memory_id
        and i.injection_id = injected.injection_id
)
select id from held
