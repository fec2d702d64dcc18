-- The :fetch best memories by the words that they had at :as_of and that a change of the columns :searched has replaced
-- since. Such words are in no index: they are read from revisions again, for the memories of the first :bound such
-- changes. If :expression, those that satisfy it; else those that hold any of :lexemes. The other parameters and the
-- score are those of recall/keyword.
with asked as materialized (
    select given.lexeme, given.weight, given.stem,
        case when starts_with(given.lexeme, '@') then 0 else given.weight end as mass,
        case when given.place <= 62 then 1::bigint << (given.place - 1)::integer else 0 end as bit
    from unnest(:lexemes::text[], :weights::float8[], :stems::text[]) with ordinality
        as given (lexeme, weight, stem, place)
),
altered as materialized (
    select distinct change.namespace_id, change.memory_id as id
    from (
        select r.namespace_id, r.memory_id
        from revisions r
        where r.namespace_id = any(:namespaces::uuid[]) and r.changed_at > :as_of::timestamptz
            and r.before ?| :searched::text[]
        order by r.changed_at
        limit :bound::integer
    ) change
),
former as materialized (
    select m.namespace_id, m.id, coalesce(m.occurred_at, m.created_at) as happened,
        m.search
    from altered
    cross join lateral (
-- include state_as_of
        where o.namespace_id = altered.namespace_id and o.id = altered.id
        limit 1  -- keeps the planner from joining all of memories
    ) m
    where m.changed && :searched::text[] and
-- include visible
)
select former.id,
    coalesce(weighed.score, 0) as score, coalesce(weighed.mass, 0) as mass, coalesce(weighed.bits, 0) as bits
from former
cross join lateral (
    select least(coalesce(sum(cardinality(array_remove(found.weights, 'C'))), 0), 32767) as length
    from unnest(former.search) as found
    where not starts_with(found.lexeme, '=')
) measured
cross join lateral (
    select sum(asked.weight *
-- include evidence
        ) as score, sum(asked.mass) as mass, bit_or(asked.bit) as bits
    from (
        select found.lexeme, measured.length,
            cardinality(array_remove(found.weights, 'C')) as frequency
        from unnest(former.search) as found
        union all
        select '@' || to_char(former.happened at time zone 'UTC', form), measured.length, 1
        from unnest(array['YYYY-MM-DD', 'MM-DD', 'YYYY-MM', 'MM', 'YYYY']) as form
    ) p
    join asked on asked.lexeme = p.lexeme
    where p.frequency > 0 and (asked.stem is null or not asked.stem = any(tsvector_to_array(former.search)))
) weighed
where case when :expression::tsquery is null then weighed.bits is not null else former.search @@ :expression::tsquery end
order by score desc, former.happened desc, former.id
limit :fetch::integer
