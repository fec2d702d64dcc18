-- Lock, of the members :ids with their :digests, those whose text is unchanged and that are still in force.
select m.id
from unnest(:ids::uuid[], :digests::bytea[]) as given (id, digest)
join memories m on m.namespace_id = :namespace::uuid and m.id = given.id and m.digest = given.digest
where m.namespace_id = :namespace::uuid and m.forgotten_at is null and m.superseded_at is null and m.expires_at is null
order by m.id
for share of m skip locked
