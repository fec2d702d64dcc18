-- Of the members :ids with their :digests those that still say the same and live, held so that they go on doing so.
select m.id
from unnest(:ids::uuid[], :digests::bytea[]) as given (id, digest)
join memories m on m.namespace_id = :namespace::uuid and m.id = given.id and m.digest = given.digest
where m.namespace_id = :namespace::uuid and m.forgotten_at is null and m.superseded_at is null
    and m.expires_at is null
order by m.id
for share of m skip locked
