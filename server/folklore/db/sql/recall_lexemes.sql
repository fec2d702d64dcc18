-- How the question, in pieces between white space, reads in :languages: each lexeme, the places of the pieces it comes
-- from, and how many memories in scope hold it, counted up to :bound. :marks are dates it names (text/moments.py).
-- If :measure, the row of the empty lexeme counts all memories in scope and says how long one is on average, in lexemes,
-- the mean and variance of the logarithm of length + 30, its size, and draws a sample of :sample vectors in :model: each
-- as its memory's length (two bytes) and its wire form. It also tells whether a valid HNSW index covers the scope.
select asked.lexeme, asked.places, (
    select count(*) from (
        select from postings p
        where p.namespace_id = any(:namespaces::uuid[]) and p.lexeme = asked.lexeme
        limit :bound::integer
    ) bounded
) as documents, null::float8 as mean_length, null::float8 as mean_size, null::float8 as size_variance,
    null::bytea as sample, null::boolean as indexed
from (
    select found.lexeme, array_agg(distinct piece.place) as places
    from unnest(:pieces::text[]) with ordinality as piece (text, place)
    cross join unnest(:languages::text[]) as spoken (language)
    cross join lateral unnest(folklore_lexemes(spoken.language, piece.text)) as found
    group by found.lexeme
    union all
    select mark, '{}' from unnest(:marks::text[]) as mark
) asked
union all
select '', null, count(*), avg(length)::float8, avg(ln(length + 30.0::float8)), var_pop(ln(length + 30.0::float8)), (
    select string_agg(int2send(drawn.length) || halfvec_send(drawn.vector), ''::bytea)
    from (
        select e.length, e.vector
        from embeddings e
        where :measure::boolean and e.namespace_id = any(:namespaces::uuid[]) and e.model_id = :model::uuid
            and e.passage = 0
        limit :sample::integer
    ) drawn
), (
    select x.indisvalid
    from pg_index x
    where :measure::boolean and cardinality(:namespaces::uuid[]) = 1
        and x.indexrelid = to_regclass(folklore_hnsw((:namespaces::uuid[])[1], :model::uuid))
)
from postings
where :measure::boolean and namespace_id = any(:namespaces::uuid[]) and lexeme = ''
