-- Memories of :namespaces whose id, written without dashes, ends in one of :endings; :tails are the last four characters
-- of each, for the index. Materialized, so that the limit does not make a scan of the whole table look cheap.
with found as materialized (
    select m.id
    from memories m
    where m.namespace_id = any(:namespaces::uuid[]) and right(m.id::text, 4) = any(:tails::text[])
)
select distinct e.ending, f.id
from found f
join unnest(:endings::text[]) as e (ending) on right(replace(f.id::text, '-', ''), length(e.ending)) = e.ending
order by e.ending, f.id desc
limit :fetch::integer
