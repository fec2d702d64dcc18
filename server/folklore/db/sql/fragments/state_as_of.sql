-- The memories o, each as it was at :as_of: of the revisions written since, the oldest gives the value of a column, and
-- `changed` names these columns. A memory that was stored later is as it is now. Superseded is a memory if it was then,
-- or if its successor says that it was true by then (occurred_at), whenever that was stored. One that was forgotten
-- since is shown to a caller who could restore it, and to all if it only expired.
    select was.*, past.changed
    from memories o
    cross join lateral (
        select coalesce(jsonb_object_agg(held.key, held.value order by r.revision desc), '{}') as former,
            coalesce(array_agg(held.key), '{}') as changed,
            coalesce(bool_or(r.action = 'expire' and r.changed_at = o.forgotten_at), false) as expired
        from revisions r
        cross join lateral jsonb_each(r.before) as held
        where r.namespace_id = o.namespace_id and r.memory_id = o.id
            and o.created_at <= :as_of::timestamptz and r.changed_at > :as_of::timestamptz
    ) past
    cross join lateral (
        select
            case when past.former ? 'superseded_at' then (past.former ->> 'superseded_at')::timestamptz
                else o.superseded_at end as superseded_at,
            case when past.former ->> 'superseded_at' is null then o.superseded_by
                else (past.former ->> 'superseded_by')::uuid end as superseded_by
    ) replaced
    cross join lateral (
        select coalesce((
            select s.occurred_at from memories s
            where s.namespace_id = o.namespace_id and s.id = replaced.superseded_by
        ), replaced.superseded_at) <= :as_of::timestamptz as yet
    ) over
    cross join lateral jsonb_populate_record(o, past.former) as stated
    cross join lateral jsonb_populate_record(o, past.former
        || case when past.changed && '{language,content,summary,tags,source}' then jsonb_build_object('search',
            folklore_search(stated.language, stated.content, stated.summary, stated.tags, stated.source)::text)
            else '{}' end
        || jsonb_build_object(
            'superseded_at', case when over.yet then replaced.superseded_at end,
            'superseded_by', case when over.yet then replaced.superseded_by end,
            'trending', folklore_trending(stated.pinned, stated.importance, coalesce(stated.occurred_at, o.created_at),
                o.updated_at, o.last_recalled_at))
        || case when past.former ? 'tags' then jsonb_build_object('tag_prefixes', to_jsonb(folklore_tag_prefixes(
            array(select jsonb_array_elements_text(past.former -> 'tags'))))) else '{}' end
        || case when o.forgotten_at is null or past.expired or (
                select coalesce(current_setting('folklore.key', true), '') = ''
            ) or o.namespace_id = any((select folklore_writable())::uuid[])
            then '{}' else jsonb_build_object('forgotten_at', o.forgotten_at) end
    ) as was
