-- The memories that return when the memories :leaving are forgotten or erased: those that one of them supersedes, and,
-- where such a memory is forgotten or leaves too, those before it. :leading are those of :leaving that are in force. A
-- memory whose text another one has by now stays superseded.
with recursive hidden as (
    select m.id, m.forgotten_at, m.digest, m.superseded_by
    from memories m
    where m.namespace_id = :namespace::uuid and m.superseded_by = any(:leading::uuid[])
    union
    select m.id, m.forgotten_at, m.digest, m.superseded_by
    from hidden
    join memories m on m.namespace_id = :namespace::uuid and m.superseded_by = hidden.id
    where hidden.forgotten_at is not null or hidden.id = any(:leaving::uuid[])
)
select distinct on (hidden.digest) hidden.id, hidden.superseded_by
from hidden
where hidden.forgotten_at is null and hidden.id <> all(:leaving::uuid[]) and not exists (
    select from memories m
    where m.namespace_id = :namespace::uuid and m.live_digest = hidden.digest and m.id <> all(:leaving::uuid[])
)
order by hidden.digest, hidden.id desc
