-- Turn the generated tsvector of the memories :ids inside out. Sorted, so that the index is walked once.
insert into postings (namespace_id, lexeme, memory_id, frequency, length)
select m.namespace_id, found.lexeme, m.id, cardinality(found.positions), least(length(m.search), 32767)
from memories m, unnest(m.search) as found
where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
order by found.lexeme, m.id
