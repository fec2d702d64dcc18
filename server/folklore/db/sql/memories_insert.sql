-- :drafts a JSON array, one object a memory, in the order of their digests so that two batches never wait in a ring.
-- A text that is already known and alive is confirmed, not doubled, and seen again if it had decayed (quality) or its
-- time was over. Positions continue their session.
insert into memories (
    namespace_id, id, content, summary, kind, tags, source, session, position, author, agent, paths, commit,
    importance, confidence, priority, language, metadata, occurred_at, created_at, updated_at, expires_at, digest,
    idempotency_key
)
select :namespace::uuid, d.id, d.content, d.summary, d.kind, d.tags, d.source, d.session,
    case when d.session is null then null else coalesce(d.position, least(coalesce((
        select max(m.position)::bigint + 1
        from memories m
        where m.namespace_id = :namespace::uuid and m.session = d.session
    ), 0) + d.step, 2147483647)::integer) end,
    d.author, d.agent, d.paths, d.commit, d.importance, d.confidence, d.priority, d.language, d.metadata,
    d.occurred_at, d.created_at, :now::timestamptz, d.expires_at, decode(d.digest, 'hex'), d.idempotency_key
from jsonb_to_recordset(:drafts::jsonb) as d (
    id uuid, content text, summary text, kind text, tags text[], source text, session text, position integer,
    step integer, author text, agent text, paths text[], commit text, importance real, confidence real,
    priority smallint, language text, metadata jsonb, occurred_at timestamptz, created_at timestamptz,
    expires_at timestamptz, digest text, idempotency_key text
)
on conflict (namespace_id, live_digest)
do update set confirmed_count = memories.confirmed_count + 1, confirmed_at = :now::timestamptz, quality = null,
    expires_at = case when memories.expires_at <= :now::timestamptz then excluded.expires_at else memories.expires_at end
returning id, digest, (xmax = 0) as is_new, trust = 'derived' as is_derived
