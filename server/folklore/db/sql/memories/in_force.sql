select m.id, m.digest
from memories m
where m.namespace_id = :namespace::uuid and m.live_digest = any(:digests::bytea[])
