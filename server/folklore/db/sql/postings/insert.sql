-- Write the postings of the memories :ids: their generated tsvector inverted, in the order of the index. Lexemes of the
-- source alone are left out: the source is searched by its own filter and does not describe what a memory is about. So
-- are words as they are spelled, after '=' (folklore_words), which the tsvector alone serves. One more row under the empty
-- lexeme counts the memory itself. Five more have its day, month and year as date terms (text/dates/date_terms.py), so
-- that a date in a query weighs as much as a rare word.
with read as materialized (
    select m.namespace_id, m.id, found.lexeme, found.positions[1] as first_position,
        cardinality(array_remove(found.weights, 'C')) as frequency
    from memories m
    left join lateral unnest(m.search) as found on not starts_with(found.lexeme, '=')
    where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
),
measured as materialized (
    select namespace_id, id, least(coalesce(sum(frequency), 0), 32767) as length from read group by namespace_id, id
)
insert into postings (namespace_id, lexeme, memory_id, frequency, first_position, length)
select read.namespace_id, read.lexeme, read.id, read.frequency, read.first_position, measured.length
from read
join measured on measured.id = read.id
where read.frequency > 0
union all
select namespace_id, '', id, 0, 0, length from measured
union all
select measured.namespace_id, '@' || to_char(coalesce(m.occurred_at, m.created_at) at time zone 'UTC', form), measured.id,
    1, 32767, measured.length
from measured
join memories m on m.namespace_id = measured.namespace_id and m.id = measured.id
cross join unnest(array['YYYY-MM-DD', 'MM-DD', 'YYYY-MM', 'MM', 'YYYY']) as form
where m.namespace_id = :namespace::uuid
order by 2, 3
