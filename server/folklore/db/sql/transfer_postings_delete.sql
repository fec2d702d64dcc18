-- The postings of the memories :ids, found by their lexemes (and the empty one, which counts the memory itself): no
-- index begins with the memory.
delete from postings p
using (
    select m.id, found.lexeme from memories m, unnest(m.search) as found
    where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
    union all
    select given.id, '' from unnest(:ids::uuid[]) as given (id)
) old
where p.namespace_id = :namespace::uuid and p.lexeme = old.lexeme and p.memory_id = old.id
