-- Who stood beside the candidates :ids in their sessions, at most :reach places away, and how far.
select seed.id as seed, m.id, abs(m.position - seed.position) as gap
from memories seed
join memories m on m.namespace_id = seed.namespace_id and m.session = seed.session
    and m.position between seed.position - :reach::integer and seed.position + :reach::integer
where seed.namespace_id = any(:namespaces::uuid[]) and m.namespace_id = any(:namespaces::uuid[])
    and seed.id = any(:ids::uuid[]) and seed.session is not null and m.id <> seed.id
    and
-- include visible
