-- Questions made of words of some memories, chosen by a hash of their ids, and the memories that hold all words of each:
-- the same in every copy of a database. By words and not by rank, since sums of scores depend on the order of rows.
select asked.question::text as question,
    array(
        select m.id::text from memories m where m.search @@ asked.question order by m.id, m.namespace_id limit 100
    ) as ids
from (
    select (
            select string_agg('''' || replace(replace(word, '\', '\\'), '''', '''''') || '''', ' & ' order by word)
            from (select unnest(tsvector_to_array(m.search)) as word limit :words::integer) first
        )::tsquery as question
    from (select * from memories order by md5(id::text), namespace_id limit :questions::integer) m
) asked
where asked.question is not null
