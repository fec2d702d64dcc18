-- name: attention. What wants attention in each of :namespaces: pairs that contradict each other, unused memories and
-- those tied to files, each counted up to :most, and memories without an embedding in :model.
select n.name as namespace,
    (select count(*) from (
        select from relations r
        where r.namespace_id = n.id and
-- include contradicting
        limit :most::integer
    ) bounded) as contradictions,
    (select count(*) from (
        select from memories m
        where m.namespace_id = n.id and
-- include unused
        limit :most::integer
    ) bounded) as unused,
    (select count(*) from (
        select from memories m
        where m.namespace_id = n.id and m.paths <> '{}'
            and m.forgotten_at is null and m.superseded_at is null
            and ({m.ends_at} is null or {m.ends_at} > :now::timestamptz)
        limit :most::integer
    ) bounded) as tied
-- include without_vector
from namespaces n where n.id = any(:namespaces::uuid[]) order by n.name

-- name: changes. The latest writes of memories in :namespaces, newest first: of each namespace at most :fetch by the
-- index on the time.
select e.namespace_id as namespace, e.id, e.at, e.principal as author, e.action, e.amount, e.ids as memories, e.agent
from namespaces n
cross join lateral (
    select a.* from audit a
    where a.namespace_id = n.id and a.action = any(:actions::text[]) and a.outcome = 'done'
        and (:principal::text is null or lower(a.principal collate "C") = lower(:principal::text collate "C"))
        and (:since::timestamptz is null or a.at >= :since::timestamptz)
        and (:until::timestamptz is null or a.at < :until::timestamptz)
    order by a.at desc limit :fetch::integer
) e
where n.id = any(:namespaces::uuid[])
order by e.at desc, e.id desc limit :fetch::integer

-- name: events. The latest events of :actions in :namespaces before an event (:before_at, :before_id,
-- :before_namespace), newest first: writes, and recalls from :recalled_since on, each read by the index on its time,
-- at most :fetch of each namespace.
select n.id as namespace, e.*
from namespaces n
cross join lateral (
    select *
    from (
        (
-- include write
                and a.at <= :before_at::timestamptz
                and (a.at, a.id, a.namespace_id) < (:before_at::timestamptz, :before_id::uuid, :before_namespace::uuid)
            order by a.at desc, a.id desc limit :fetch::integer
        )
        union all
        (
-- include recalled
                and u.used_at >= :recalled_since::timestamptz and u.used_at <= :before_at::timestamptz
                and (u.used_at, u.answer_id, u.namespace_id)
                    < (:before_at::timestamptz, :before_id::uuid, :before_namespace::uuid)
            group by u.used_at, u.answer_id
            order by u.used_at desc, u.answer_id desc limit :fetch::integer
        )
    ) either
) e
where n.id = any(:namespaces::uuid[])
order by e.at desc, e.id desc, n.id desc limit :fetch::integer

-- name: events_since. The first :fetch events of :actions in :namespaces from :since on, oldest first. As
-- activity/events.
select n.id as namespace, e.*
from namespaces n
cross join lateral (
    select *
    from (
        (
-- include write
                and a.at >= :since::timestamptz
            order by a.at, a.id limit :fetch::integer
        )
        union all
        (
-- include recalled
                and u.used_at >= :since::timestamptz
            group by u.used_at, u.answer_id
            order by u.used_at, u.answer_id limit :fetch::integer
        )
    ) either
) e
where n.id = any(:namespaces::uuid[])
order by e.at, e.id, n.id limit :fetch::integer

-- name: newest_similar. How many of the :newest latest memories in :namespaces are near-duplicates of an older one,
-- by namespace: of each, the :compared memories before it are compared by their embeddings in :model. So the work is
-- bounded. Pairs that a relation of :settled joins are left out. The latest memories are all in the :newest
-- namespaces that were written to last.
with latest as (
    select n.id, n.name, last.id as memory
    from namespaces n
    cross join lateral (
        select m.id from memories m where m.namespace_id = n.id order by m.id desc limit 1
    ) last
    where n.id = any(:namespaces::uuid[])
    order by last.id desc limit :newest::integer
),
newest as materialized (
    select latest.id as namespace_id, latest.name, m.id, m.vector
    from latest
    cross join lateral (
        select m.id, e.vector
        from memories m
        join embeddings e on e.namespace_id = m.namespace_id and e.model_id = :model::uuid and e.memory_id = m.id
            and e.passage = 0
        where m.namespace_id = latest.id and m.trust <> 'derived'
            and m.forgotten_at is null and m.superseded_at is null
            and ({m.ends_at} is null or {m.ends_at} > :now::timestamptz)
        order by m.id desc limit :newest::integer
    ) m
    order by m.id desc limit :newest::integer
),
near as materialized (
    select newest.namespace_id, newest.name, newest.id, older.memory_id as other
    from newest
    cross join lateral (
        select e.memory_id, e.vector from embeddings e
        where e.namespace_id = newest.namespace_id and e.model_id = :model::uuid and e.memory_id < newest.id
            and e.passage = 0
        order by e.memory_id desc limit :compared::integer
    ) older
    where (newest.vector <=> older.vector) <= :distance::float8
)
select near.name as namespace, count(distinct near.id) as similar
from near
cross join lateral (
    select m.id from memories m
    where m.namespace_id = near.namespace_id and m.id = near.other
        and m.trust <> 'derived' and m.forgotten_at is null and m.superseded_at is null
        and ({m.ends_at} is null or {m.ends_at} > :now::timestamptz)
    limit 1
) older
where not exists (
    select from relations k
    where k.namespace_id = near.namespace_id and k.type = any(:settled::text[])
        and ((k.from_id, k.to_id) = (near.id, near.other) or (k.from_id, k.to_id) = (near.other, near.id))
    offset 0  -- else a plan may read all relations for a hash join
)
group by near.name

-- name: recalled. How many memories of :namespaces were recalled on each day; :starts are the beginnings of the days,
-- and `day` is an index among them, from 0.
select width_bucket(u.used_at, :starts::timestamptz[]) - 1 as day, count(*) as memories from usage u
where u.namespace_id = any(:namespaces::uuid[]) and u.used_at >= (:starts::timestamptz[])[1]
group by day

-- name: uses. The latest :fetch uses of a memory, newest first: in answers, and in texts that hooks injected, of
-- :caller alone if it is given.
select *
from (
    (
        select u.answer_id as id, u.used_at as at, 'recall' as kind, u.caller as author, u.rank,
            round(u.score::numeric, 6)::float8 as score, u.session,
            null::text as used, null::timestamptz as used_at
        from usage u where u.namespace_id = :namespace::uuid and u.memory_id = :memory::uuid
        order by u.used_at desc, u.answer_id desc limit :fetch::integer
    )
    union all
    (
        select i.injection_id, i.injected_at, 'injection', i.caller, i.rank + 1, null, i.session, i.used, i.used_at
        from injections i
        where i.namespace_id = :namespace::uuid and i.memory_id = :memory::uuid
            and (:caller::text is null or i.caller = :caller::text)
        order by i.injected_at desc, i.injection_id desc limit :fetch::integer
    )
) either
order by at desc, id desc limit :fetch::integer

-- name: written. How many memories of :namespaces were written on each day, by author and action. Days as in
-- activity/recalled.
select width_bucket(a.at, :starts::timestamptz[]) - 1 as day, a.principal as author, a.action,
    sum(a.amount)::bigint as memories
from audit a
where a.namespace_id = any(:namespaces::uuid[]) and a.at >= (:starts::timestamptz[])[1] and a.outcome = 'done'
    and a.action = any(:actions::text[])
group by day, a.principal, a.action
