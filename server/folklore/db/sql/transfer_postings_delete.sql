-- The postings of the memories :ids, found by their lexemes: no index begins with the memory.
delete from postings p
using (
    select m.id, found.lexeme from memories m, unnest(m.search) as found
    where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
) old
where p.namespace_id = :namespace::uuid and p.lexeme = old.lexeme and p.memory_id = old.id
