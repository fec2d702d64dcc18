-- What was injected since :since. For each of :memories that was: how often prompts got it, how often it was used then,
-- and whether this session has it. In each row the same: `tokens`, the sum over the prompts of the session, and `usual`,
-- the used share of the last 200 injections of any memory.
with past as (
    select i.memory_id as id,
        count(*) filter (where i.event = 'UserPromptSubmit')::integer as times,
        count(i.used_at) filter (where i.event = 'UserPromptSubmit')::integer as used,
        bool_or(i.caller = :caller::text and i.session = :session::text and i.dropped_at is null) as given
    from injections i
    where i.namespace_id = any(:namespaces::uuid[]) and i.memory_id = any(:memories::uuid[])
        and i.injected_at >= :since::timestamptz
    group by i.namespace_id, i.memory_id
),
spent as (
    select coalesce(sum(i.tokens), 0)::integer as tokens
    from injections i
    where i.namespace_id = any(:namespaces::uuid[]) and i.caller = :caller::text and i.session = :session::text
        and i.dropped_at is null and i.event = 'UserPromptSubmit'
),
latest as (
    select i.used_at
    from injections i
    where i.namespace_id = any(:namespaces::uuid[]) and i.event = 'UserPromptSubmit'
        and i.injected_at >= :since::timestamptz
    order by i.injected_at desc
    limit 200
),
whole as (
    select coalesce(count(used_at)::float8 / nullif(count(*), 0), 0) as usual from latest
)
select past.id, past.times, past.used, past.given, spent.tokens, whole.usual
from spent
cross join whole
left join past on true
