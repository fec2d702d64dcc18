-- The memories of a namespace (:ids null: all), before they move to :into: `state` is null for those that can. Others are there under the
-- same id: "known" with the same text, in force if this one is, else "differing". `duplicate` is a memory in force there
-- that has the text of one in force here.
select m.id, case
        when same.id is null then null
        when same.digest = m.digest and (m.live_digest is null or same.live_digest is not null) then 'known'
        else 'differing'
    end as state, text.id as duplicate
from memories m
left join memories same on same.namespace_id = :into::uuid and same.id = m.id
left join memories text on text.namespace_id = :into::uuid and text.live_digest = m.live_digest
where m.namespace_id = :namespace::uuid and (:ids::uuid[] is null or m.id = any(:ids::uuid[]))
order by m.id
