-- The :fetch best visible memories among candidates in order: :spaces, :numbers (of packed ones), :ids (of fresh ones),
-- :scores and :masses belong together. The id of a number that was retired since is that of no memory.
select ranked.memory_id as id, ranked.score, ranked.mass, ranked.namespace_id
from (
    select given.namespace_id, given.score, given.mass, coalesce(given.id, (
            select encode(substring(p.ids from given.number % 256 * 16 + 1 for 16), 'hex')::uuid
            from packed_memories p
            where p.namespace_id = given.namespace_id and p.namespace_id = any(:namespaces::uuid[])
                and p.block = given.number / 256
        )) as memory_id
    from unnest(:spaces::uuid[], :numbers::integer[], :ids::uuid[], :scores::float8[], :masses::float8[])
        as given (namespace_id, number, id, score, mass)
    offset 0  -- row-level security lets no expression into the condition of an index
) ranked
-- include ranked
