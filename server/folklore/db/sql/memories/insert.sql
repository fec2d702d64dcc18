-- Store memories. :drafts is a JSON array with one object for each memory, in the order of digests so that two batches
-- cannot deadlock. A text that a memory in force has is confirmed instead: its quality is reset, and an expired one
-- gets the new expiry. A position that is not given continues the session.
insert into memories (namespace_id, id, {fields}, position, author, agent, created_at, updated_at, digest)
select :namespace::uuid, d.id, {d.fields},
    case when d.session is null then null else coalesce(d.position, least(coalesce((
        select max(m.position)::bigint + 1 from memories m where m.namespace_id = :namespace::uuid and m.session = d.session
    ), 0) + d.step, 2147483647)::integer) end,
    d.author, d.agent, d.created_at, :now::timestamptz, decode(d.digest, 'hex')
from jsonb_to_recordset(:drafts::jsonb) as d (
    id uuid, {field_types}, step integer, author text, agent text, created_at timestamptz, digest text
)
on conflict (namespace_id, live_digest)
do update set confirmed_count = memories.confirmed_count + 1, confirmed_at = :now::timestamptz, quality = null,
    expires_at = case when memories.expires_at <= :now::timestamptz then excluded.expires_at else memories.expires_at end
returning id, digest, (xmax = 0) as is_new, trust = 'derived' as is_derived
