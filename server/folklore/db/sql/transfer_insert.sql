-- The memories of transfer_arrivals as they come. Whatever is here already, by id, living text or idempotency key,
-- stays untouched and does not come back.
-- superseded_by follows in transfer_link, since its target may arrive later.
insert into memories (
    namespace_id, id, content, summary, kind, tags, source, session, position, author, agent, paths, commit,
    importance, confidence, priority, quality, trust, language, metadata, occurred_at, created_at, updated_at,
    expires_at, forgotten_at, superseded_at, last_recalled_at, recall_count, confirmed_count, revision, digest,
    idempotency_key
)
select :namespace::uuid, d.id, d.content, d.summary, d.kind, d.tags, d.source, d.session,
    case when d.session is null then null else coalesce(d.position, coalesce((
        select max(m.position) + 1 from memories m where m.namespace_id = :namespace::uuid and m.session = d.session
    ), 0) + d.step) end,
    d.author, d.agent, d.paths, d.commit, d.importance, d.confidence, d.priority, d.quality, d.trust, d.language,
    d.metadata, d.occurred_at, d.created_at, d.updated_at, d.expires_at, d.forgotten_at, d.superseded_at,
    d.last_recalled_at, d.recall_count, d.confirmed_count, d.revision, decode(d.digest, 'hex'), d.idempotency_key
from (
-- include transfer_arrivals
) d
on conflict do nothing
returning id
