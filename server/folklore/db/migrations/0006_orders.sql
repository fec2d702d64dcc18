-- The orders of lists, each from an index.

create function folklore_trending(
    pinned boolean, importance real, happened timestamptz, updated_at timestamptz, last_recalled_at timestamptz
) returns timestamptz
language sql immutable parallel safe
return case
    when pinned then timestamptz '9999-12-31 00:00+00'
    when importance is not null or last_recalled_at is not null or updated_at <> happened then (least(
        greatest(happened at time zone 'UTC', date_trunc('hour', last_recalled_at at time zone 'UTC'))
            + (coalesce(importance, 0.5) - 0.5) * interval '60 days',
        timestamp '9999-12-30')) at time zone 'UTC'
end;

alter table memories add column trending timestamptz generated always as (
    folklore_trending(pinned, importance, coalesce(occurred_at, created_at), updated_at, last_recalled_at)
) stored;
create index memories_order_idx on memories (namespace_id, coalesce(occurred_at, created_at), id) where trending is null;
create index memories_happened_idx on memories (namespace_id, coalesce(occurred_at, created_at), id)
    where trending is not null;
create index memories_updated_idx on memories (namespace_id, updated_at, id) where trending is not null;
create index memories_trending_idx on memories (namespace_id, trending, id) where trending is not null;
