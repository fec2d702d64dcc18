create function folklore_named(name text, roles text[]) returns boolean
language sql stable parallel safe
return exists (
    select from unnest(folklore_prefixes(roles)) as p (prefix) where folklore_begins(folklore_named.name, p.prefix));

create function folklore_lock(space uuid) returns table (id uuid, deleted_at timestamptz)
language plpgsql as $$
begin
    perform pg_advisory_xact_lock(hashtextextended(space::text, 0));
    return query select n.id, n.deleted_at from namespaces n where n.id = space;
end
$$;

create function folklore_ensure(
    new_id uuid, new_name text, own_language text, stated text[], detected text[], at timestamptz, author text
) returns table (id uuid, language text)
language plpgsql as $$
declare
    found_id uuid := (
        select n.id from namespaces n where lower(n.name collate "C") = lower(new_name collate "C") and n.deleted_at is null);
begin
    if found_id is null then
        perform pg_advisory_xact_lock(hashtextextended(lower(new_name collate "C"), 0));
        found_id := (
            select n.id from namespaces n where lower(n.name collate "C") = lower(new_name collate "C") and n.deleted_at is null);
    end if;
    perform pg_advisory_xact_lock_shared(hashtextextended(coalesce(found_id, new_id)::text, 0));
    if found_id is null then
        stated := array(select distinct unnest(array[own_language] || stated || detected) order by 1);
        insert into namespaces (id, name, language, languages, created_at, created_by)
        values (new_id, new_name, own_language, stated, at, author) on conflict do nothing;
    elsif exists (
        select from namespaces n
        where n.id = found_id and not (n.languages @> stated and (n.language = 'simple' or n.languages @> detected))
    ) then
        update namespaces n set languages = array(select distinct unnest(
            n.languages || stated || case when n.language <> 'simple' then detected end) order by 1)
        where n.id = found_id;
    end if;
    return query select n.id, n.language from namespaces n where n.id = coalesce(found_id, new_id) and n.deleted_at is null;
end
$$;

create function folklore_record_usage(space uuid, uses jsonb, since interval) returns setof uuid
language plpgsql as $$
declare
    held uuid[];
    logged record;
begin
    select array_agg(m.id) into held from (
        select m.id from memories m
        where m.namespace_id = space and m.id = any(array(
            select g.memory from jsonb_to_recordset(uses) as g (memory uuid)))
        order by m.id
        for no key update skip locked
    ) m;
    for logged in
        insert into usage (namespace_id, memory_id, answer_id, used_at, rank, score, query, session, caller)
        select space, g.memory, g.answer, g.at, g.rank, g.score, decode(g.query, 'hex'), g.session, g.caller
        from jsonb_to_recordset(uses) as g (
            memory uuid, answer uuid, at timestamptz, rank smallint, score real, query text, session text, caller text)
        where g.memory = any(held) and g.answer is not null
        on conflict do nothing returning memory_id, used_at
    loop
        update memories m
        set recall_count = m.recall_count + 1, last_recalled_at = greatest(m.last_recalled_at, logged.used_at)
        where m.namespace_id = space and m.id = logged.memory_id;
    end loop;
    update injections i set used_at = first.at, used = first.used
    from (
        select distinct on (g.memory, g.caller) g.memory, g.caller, g.at, g.used
        from jsonb_to_recordset(uses) as g (memory uuid, caller text, at timestamptz, used text)
        order by g.memory, g.caller, g.at
    ) first
    where i.namespace_id = space and i.memory_id = first.memory and i.caller = first.caller and i.memory_id = any(held)
        and i.used_at is null and exists (
            select from jsonb_to_recordset(uses) as g (memory uuid, caller text, at timestamptz)
            where g.memory = i.memory_id and g.caller = i.caller and g.at > i.injected_at and g.at <= i.injected_at + since);
    return query select unnest(held);
end
$$;
