-- Who changed the text of a memory last; the time of a memory for order.

alter table memories add column changed_by text;
alter table memories add column changed_at timestamptz;

-- By the last change of a text that was not undone, unless its author wrote the content again. An import has all columns
-- in its revision, whether or not they changed. A memory at a time, as a cluster takes it.
do $do$
declare
    last record;
begin
    for last in
        select distinct on (r.namespace_id, r.memory_id) r.namespace_id, r.memory_id, r.author, r.changed_at,
            r.author <> o.author as by_another
        from revisions r
        join memories o on o.namespace_id = r.namespace_id and o.id = r.memory_id
        where r.action <> 'undo'
            and r.before ?| array['content', 'summary', 'source']
            and (r.action <> 'import' or (r.before ->> 'content', r.before ->> 'summary', r.before ->> 'source')
                is distinct from (o.content, o.summary, o.source))
            and (r.author <> o.author or r.before ? 'content')
            and not exists (
                select from revisions u
                where u.namespace_id = r.namespace_id and u.memory_id = r.memory_id and u.undoes = r.revision
            )
        order by r.namespace_id, r.memory_id, r.revision desc
    loop
        if last.by_another then
            update memories set changed_by = last.author, changed_at = last.changed_at
            where namespace_id = last.namespace_id and id = last.memory_id;
        end if;
    end loop;
end
$do$;

create or replace function folklore_trending(
    pinned boolean, importance real, happened timestamptz, updated_at timestamptz, last_recalled_at timestamptz
) returns timestamptz
language sql immutable parallel safe
return case
    when pinned then timestamptz '9999-12-31 00:00+00'
    when importance is not null or last_recalled_at is not null or updated_at > happened then (least(
        greatest(least(happened, updated_at) at time zone 'UTC', date_trunc('hour', last_recalled_at at time zone 'UTC'),
            timestamp '0001-02-02') + (coalesce(importance, 0.5) - 0.5) * interval '60 days',
        timestamp '9999-12-30')) at time zone 'UTC'
end;

-- Computed again where the function returns another time now.
update memories set updated_at = updated_at
where coalesce(occurred_at, created_at) > updated_at or occurred_at < timestamptz '0001-02-02 00:00+00';

drop index memories_order_idx;
drop index memories_happened_idx;
create index memories_order_idx on memories (namespace_id, least(coalesce(occurred_at, created_at), updated_at), id)
    where trending is null;
create index memories_happened_idx on memories (namespace_id, least(coalesce(occurred_at, created_at), updated_at), id)
    where trending is not null;
