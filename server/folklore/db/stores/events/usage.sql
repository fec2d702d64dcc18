-- name: count
select count(*) as count from usage u where u.namespace_id = :namespace::uuid and u.used_at < :before::timestamptz

-- name: asked. How often the memory :memory answered each of the questions :queries, digests in hexadecimal.
select given.index, (
        select count(*) from usage u
        where u.namespace_id = :namespace::uuid and u.memory_id = :memory::uuid
            and u.query = decode(given.query, 'hex')
    ) as answers
from unnest(:queries::text[]) with ordinality as given (query, index)
order by given.index

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
-- not counted again. A function, since a cluster takes one write in a statement.
select used as id from folklore_record_usage(:namespace::uuid, :used::jsonb, :within::interval) as used
