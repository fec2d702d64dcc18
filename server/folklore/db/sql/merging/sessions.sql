-- The sessions that both namespaces have, and the position that follows the last one in :into.
select held.session, max(held.position) + 1 as position
from memories held
where held.namespace_id = :into::uuid and held.session in (
    select moving.session from memories moving where moving.namespace_id = :namespace::uuid and moving.session is not null
)
group by held.session
