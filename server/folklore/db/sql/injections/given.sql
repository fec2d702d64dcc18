-- What was injected since :since. For each of :memories that was: whether this session has it, and whether it was never
-- used though prompts got it :ignored times. In each row the same: `tokens`, the sum over the hooks of the session.
with past as (
    select i.memory_id as id,
        bool_or(i.caller = :caller::text and i.session = :session::text and i.dropped_at is null) as given,
        count(*) filter (where i.event <> 'SessionStart') >= :ignored::integer and count(i.used_at) = 0 as ignored
    from injections i
    where i.namespace_id = any(:namespaces::uuid[]) and i.memory_id = any(:memories::uuid[])
        and i.injected_at >= :since::timestamptz
    group by i.namespace_id, i.memory_id
),
spent as (
    select coalesce(sum(i.tokens), 0)::integer as tokens
    from injections i
    where i.namespace_id = any(:namespaces::uuid[]) and i.caller = :caller::text and i.session = :session::text
        and i.dropped_at is null and i.event <> 'SessionStart'
)
select past.id, past.given, past.ignored, spent.tokens
from spent
left join past on true
