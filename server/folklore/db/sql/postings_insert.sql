-- Turn the generated tsvector of the memories :ids inside out. Sorted, so that the index is walked once.
-- The source is searched by its own filter and is no evidence of what a memory is about.
insert into postings (namespace_id, lexeme, memory_id, frequency, length)
select namespace_id, lexeme, id, frequency, least(sum(frequency) over (partition by id), 32767)
from (
    select m.namespace_id, m.id, found.lexeme, cardinality(array_remove(found.weights, 'C')) as frequency
    from memories m, unnest(m.search) as found
    where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
) read
where frequency > 0
order by lexeme, id
