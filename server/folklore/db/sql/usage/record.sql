-- :used is a JSON array with one object for each memory in an answer, all of one namespace. Log each and count it on
-- its memory. Memories that another transaction has locked are skipped and not returned: waiting here could deadlock.
-- What is logged already is not counted again.
with given as materialized (
    select * from jsonb_to_recordset(:used::jsonb) as g (
        memory uuid, answer uuid, at timestamptz, rank smallint, score real, query text, session text, caller text
    )
),
held as materialized (
    select m.namespace_id, m.id
    from memories m
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
    on conflict do nothing
    returning namespace_id, memory_id, used_at
),
counted as (
    update memories m
    set recall_count = m.recall_count + seen.times, last_recalled_at = greatest(m.last_recalled_at, seen.latest)
    from (
        select namespace_id, memory_id, count(*)::integer as times, max(used_at) as latest
        from logged
        group by namespace_id, memory_id
    ) seen
    where m.namespace_id = :namespace::uuid and m.id = seen.memory_id
)
select id from held
