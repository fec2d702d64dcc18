-- Deletes the postings of the memories :ids, as postings/insert writes them: the lexemes of their text, the empty lexeme
-- with their length, the date terms. Each is found by its lexeme, since no index begins with the memory.
delete from postings p
using (
    select m.id, found.lexeme
    from memories m, unnest(m.search) as found
    where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[]) and not starts_with(found.lexeme, '=')
    union all
    select m.id, '@' || to_char(coalesce(m.occurred_at, m.created_at) at time zone 'UTC', form)
    from memories m
    cross join unnest(array['YYYY-MM-DD', 'MM-DD', 'YYYY-MM', 'MM', 'YYYY']) as form
    where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
    union all
    select given.id, '' from unnest(:ids::uuid[]) as given (id)
) old
where p.namespace_id = :namespace::uuid and p.lexeme = old.lexeme and p.memory_id = old.id
