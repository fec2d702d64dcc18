-- What was injected from each of :namespaces that has any: notes, their tokens, and how many of them were used.
select n.name, count(*) as injected, sum(i.tokens)::bigint as injected_tokens, count(i.used_at) as injected_used
from injections i
join namespaces n on n.id = i.namespace_id
where i.namespace_id = any(:namespaces::uuid[])
group by n.name
