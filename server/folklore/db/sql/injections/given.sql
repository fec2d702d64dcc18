-- What a session was given before. For each of :memories: whether the session has it, how often prompts of all sessions
-- got it (among its last :last injections), and how often it was used then. In each row the same: `tokens`, the sum over
-- the session, and `usual`, the share of use of the last :last_of_all injections of any memory.
select c.id, past.times, past.used, whole.tokens, coalesce(whole.usual, 0)::float8 as usual,
    exists (
        select from injections i
        where i.namespace_id = any(:namespaces::uuid[]) and i.caller = :caller::text and i.session = :session::text
            and i.memory_id = c.id and i.dropped_at is null
    ) as given
from unnest(:memories::uuid[]) c (id)
cross join lateral (
    select count(*)::integer as times, count(recent.used_at)::integer as used
    from (
        select i.used_at
        from injections i
        where i.namespace_id = any(:namespaces::uuid[]) and i.memory_id = c.id and i.event = 'UserPromptSubmit'
        order by i.injection_id desc
        limit :last::integer
    ) recent
) past
cross join (
    select
        (
            select coalesce(sum(i.tokens), 0)::integer
            from injections i
            where i.namespace_id = any(:namespaces::uuid[]) and i.caller = :caller::text
                and i.session = :session::text and i.dropped_at is null and i.event = 'UserPromptSubmit'
        ) as tokens,
        (
            select count(recent.used_at)::float8 / nullif(count(*), 0)
            from (
                select i.used_at
                from injections i
                where i.namespace_id = any(:namespaces::uuid[]) and i.event = 'UserPromptSubmit'
                order by i.injected_at desc
                limit :last_of_all::integer
            ) recent
        ) as usual
) whole
