-- name: ask. Record that an assistant is asked to store assertions; no row if another process was first.
update assistant_sessions s set asks = s.asks + 1, stated = s.stated || :stated::jsonb
where s.namespace_id = :namespace::uuid and s.caller = :caller::text and s.session = :session::text
    and s.asks = :requests::integer
returning s.session

-- name: claim. Record the notes of one injection from one namespace, a JSON array, and return those that are new to this
-- session: memories that it was not given before, or not whole. Two processes that inject into a session at the same
-- time wait for each other at the unique index, and only one of them gets a note.
insert into injections as i (
    namespace_id, memory_id, injection_id, rank, caller, session, event, injected_at, heading, note, tokens, whole
)
select m.namespace_id, m.id, :injection::uuid, g.rank, :caller::text, :session::text, :event::text, :now::timestamptz,
    :heading::text, g.note, g.tokens, g.whole
from jsonb_to_recordset(:notes::jsonb) as g (memory uuid, rank smallint, note text, tokens smallint, whole boolean)
join memories m on m.namespace_id = :namespace::uuid and m.id = g.memory
    and m.id = any(array(select memory from jsonb_to_recordset(:notes::jsonb) as named (memory uuid)))  -- as changes/update
order by m.id
on conflict (namespace_id, caller, session, memory_id) where dropped_at is null do update
set injection_id = excluded.injection_id, rank = excluded.rank, event = excluded.event, injected_at = excluded.injected_at,
    heading = excluded.heading, note = excluded.note, tokens = i.tokens + excluded.tokens, whole = true
where excluded.whole and not i.whole
returning memory_id

-- name: count
select count(*) as count from injections i where i.namespace_id = :namespace::uuid and i.injected_at < :before::timestamptz

-- name: counts. The number of memories in force, and their most frequent kinds and tags, without the default kind,
-- with the number of each: those of at most :longest bytes that match :plain.
with alive as (
    select m.kind, m.tags from memories m
    where m.namespace_id = :namespace::uuid and
    -- include alive
),
topics as (
    select topic, count(*) as number
    from alive
    cross join lateral unnest(array_append(alive.tags, alive.kind)) topic
    where topic <> 'note' and not starts_with(topic, 'entity:')
        and octet_length(topic) <= :longest::integer and topic ~ :plain::text
    group by topic
    having count(*) > 1
    order by number desc, topic limit 6
)
select (select count(*) from alive)::integer as memories,
    array(select format('%s %s', topic, number) from topics order by number desc, topic) as topics

-- name: delete
with old as materialized (
    select i.memory_id, i.injection_id from injections i
    where i.namespace_id = :namespace::uuid and i.injected_at < :before::timestamptz
    order by i.injected_at limit :batch::integer
    for update skip locked
)
delete from injections i using old
where i.namespace_id = :namespace::uuid and i.memory_id = old.memory_id and i.injection_id = old.injection_id
returning i.memory_id

-- name: delete_sessions
delete from assistant_sessions s
where s.namespace_id = :namespace::uuid and s.started_at < :before::timestamptz returning s.session

-- name: drop. Mark what a session was given from a namespace as dropped, since its client has compacted it.
update injections i set dropped_at = :now::timestamptz
where i.namespace_id = :namespace::uuid and i.caller = :caller::text and i.session = :session::text
    and i.dropped_at is null
returning i.memory_id

-- name: enter. Record that an assistant's session works in a project, and what was stated in it, by sentence. In a
-- session that is known, a call without an assertion locks and writes nothing; one that holds 100 of them takes no
-- more.
insert into assistant_sessions as s (namespace_id, caller, session, started_at, project, stated)
select :namespace::uuid, :caller::text, :session::text, :now::timestamptz, :project::text, :stated::jsonb
where :stated::jsonb <> '{}' or not exists (
    select from assistant_sessions known
    where known.namespace_id = :namespace::uuid and known.caller = :caller::text and known.session = :session::text
)
on conflict (namespace_id, caller, session) do update set stated = excluded.stated || s.stated
where excluded.stated <> '{}' and (select count(*) from jsonb_object_keys(s.stated)) < 100 returning s.session

-- name: given. What was injected since :since. For each of :memories that was: whether this session has it, at least the
-- beginning, and whether it has the whole; whether it was never used though prompts of this caller got it :ignored
-- times: what others ignore does not count. In each row the same: `tokens`, the sum over the hooks of the session.
with past as (
    select i.memory_id as id,
        bool_or(i.caller = :caller::text and i.session = :session::text and i.dropped_at is null) as given,
        bool_or(i.caller = :caller::text and i.session = :session::text and i.dropped_at is null and i.whole) as whole,
        count(*) filter (where i.event <> 'SessionStart' and i.caller = :caller::text) >= :ignored::integer and count(i.used_at) = 0 as ignored
    from injections i
    where i.namespace_id = any(:namespaces::uuid[]) and i.memory_id = any(:memories::uuid[])
        and i.injected_at >= :since::timestamptz
    group by i.namespace_id, i.memory_id
),
spent as (
    select coalesce(sum(i.tokens), 0)::integer as tokens from injections i
    where i.namespace_id = any(:namespaces::uuid[]) and i.caller = :caller::text and i.session = :session::text
        and i.dropped_at is null and i.event <> 'SessionStart'
)
select past.id, past.given, past.whole, past.ignored, spent.tokens
from spent
left join past on true

-- name: last_session. The caller's last session in a project before :before.
select s.session, s.started_at from assistant_sessions s
where s.namespace_id = any(:namespaces::uuid[])
    and (s.project = :project::text or s.namespace_id <> '00000000-0000-0000-0000-000000000000') and s.caller = :caller::text
    and s.session <> '' and s.started_at < :before::timestamptz
order by s.started_at desc limit 1

-- name: pause. Silence the hooks of a session until a time, or of every session of a caller, which has no name here.
insert into assistant_sessions (namespace_id, caller, session, started_at, project, paused_until)
select :namespace::uuid, :caller::text, :session::text, :now::timestamptz, '', :until::timestamptz
on conflict (namespace_id, caller, session) do update set paused_until = excluded.paused_until
returning session

-- name: paused. Until when the hooks of a session are silent.
select max(s.paused_until) as until from assistant_sessions s
where s.namespace_id = :namespace::uuid and s.caller = :caller::text and s.session = any(array['', :session::text])
    and s.paused_until > :now::timestamptz

-- name: read. The latest injected notes in :namespaces, newest first; of one caller and of one session if given.
select i.injection_id as injection, n.name as namespace, i.memory_id as memory, i.rank, i.caller, i.session, i.event,
    i.injected_at, i.heading, i.note, i.tokens, i.used_at, i.used
from injections i
join namespaces n on n.id = i.namespace_id
where i.namespace_id = any(:namespaces::uuid[])
    and (:caller::text is null or i.caller = :caller::text)
    and (:session::text is null or starts_with(i.session, :session::text))
order by i.injected_at desc, i.injection_id desc, i.rank limit :fetch::integer

-- name: resume. End every pause of a caller.
update assistant_sessions s set paused_until = null
where s.namespace_id = :namespace::uuid and s.caller = :caller::text and s.paused_until is not null
returning s.session

-- name: settle. Remove assertions of a caller that were stored, or that a person dropped, and record that the others
-- of the project were compared with what was written until :now.
update assistant_sessions s set stated = coalesce((
    select jsonb_object_agg(said.key, said.value || jsonb_build_object('since', :now::timestamptz))
    from jsonb_each(s.stated - :sentences::text[]) said
), '{}')
where s.namespace_id = :namespace::uuid and s.caller = :caller::text and s.stated <> '{}'
    and (s.project = :project::text or s.namespace_id <> '00000000-0000-0000-0000-000000000000')
returning s.session

-- name: stated. The assertions of a caller in a project that were not stored, oldest first. `requests` counts the times
-- that the session was asked. A project without memories has its sessions under the id of zeros.
select s.namespace_id as namespace, s.session, s.asks as requests, said.key as sentence,
    (said.value ->> 'said_at')::timestamptz as said_at, (said.value ->> 'asked_at')::timestamptz as asked_at,
    greatest((said.value ->> 'said_at')::timestamptz, (said.value ->> 'asked_at')::timestamptz,
        (said.value ->> 'since')::timestamptz) as since
from assistant_sessions s
cross join lateral jsonb_each(s.stated) said
where s.namespace_id = any(:namespaces::uuid[])
    and (s.project = :project::text or s.namespace_id <> '00000000-0000-0000-0000-000000000000') and s.caller = :caller::text
order by said_at, sentence

-- name: stated_in. Where a caller said what was not stored, in :namespaces and by the id of zeros in projects without any.
select distinct s.namespace_id as namespace, s.project from assistant_sessions s
where s.namespace_id = any(:namespaces::uuid[]) and s.caller = :caller::text and s.stated <> '{}'

-- name: stats. What was injected from each of :namespaces that has any: notes, their tokens, and how many of them
-- were used.
select n.name, count(*) as injected, sum(i.tokens)::bigint as injected_tokens, count(i.used_at) as injected_used
from injections i
join namespaces n on n.id = i.namespace_id
where i.namespace_id = any(:namespaces::uuid[])
group by n.name

-- name: unused. What a session was given from :since to :before and has not used.
select i.namespace_id as namespace, i.memory_id as memory, i.injected_at,
    (select m.content from memories m where m.namespace_id = i.namespace_id and m.id = i.memory_id) as content
from injections i
where i.namespace_id = any(:namespaces::uuid[]) and i.caller = :caller::text and i.session = :session::text
    and i.used_at is null and i.injected_at >= :since::timestamptz and i.injected_at < :before::timestamptz

-- name: use. Record the first use of memories of a namespace that a session was given. Rows that another statement
-- has locked are skipped: it records a use too.
with held as materialized (
    select i.memory_id, i.injection_id from injections i
    where i.namespace_id = :namespace::uuid and i.memory_id = any(:memories::uuid[])
        and i.caller = :caller::text and i.session = :session::text and i.used_at is null
        and i.injected_at <= :now::timestamptz
    for update skip locked
)
update injections i set used_at = :now::timestamptz, used = :used::text
from held h
where i.namespace_id = :namespace::uuid and i.memory_id = h.memory_id and i.injection_id = h.injection_id
returning i.memory_id

-- name: written. The latest texts that a caller stored or changed since a time.
select a.at, m.content
from audit a
cross join lateral unnest(a.ids) as named (id)
cross join lateral (
    select m.id, m.content from memories m
    where m.namespace_id = a.namespace_id and m.id = named.id and m.forgotten_at is null and m.superseded_at is null
    limit 1  -- keeps the planner from joining all of memories
) m
where a.namespace_id = any(:namespaces::uuid[]) and a.at >= :since::timestamptz and a.principal = :caller::text
    and a.action = any(:writes::text[]) and a.outcome = 'done'
order by a.at desc, m.id limit 50
