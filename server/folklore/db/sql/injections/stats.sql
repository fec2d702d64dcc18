-- What was injected from each of :namespaces: texts, notes, their tokens, and how many notes were used.
select n.name as namespace, count(distinct i.injection_id)::integer as injections, count(*)::integer as notes,
    sum(i.tokens)::integer as tokens, count(i.used_at)::integer as used
from injections i
join namespaces n on n.id = i.namespace_id
where i.namespace_id = any(:namespaces::uuid[])
group by n.name
order by lower(n.name)
