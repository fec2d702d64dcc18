-- :names the namespaces asked for, null for all of them.
-- memories is counted up to 50,000: recall needs the order of magnitude for document frequency, not a tally.
select n.id, n.name, n.description, n.language, n.languages, n.created_at,
    (select count(*) from (
        select from memories m where m.namespace_id = n.id limit 50000
    ) bounded) as memories
from namespaces n
where :names::text[] is null or lower(n.name) in (select lower(name) from unnest(:names::text[]) as asked (name))
order by n.name
