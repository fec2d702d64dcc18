-- Postings in blocks, in place of a row for each word of a memory: a twentieth of the bytes, and statistics that are kept.

drop function if exists folklore_delete_postings(uuid, uuid[]);
drop table if exists postings;

create function folklore_word(lexeme text) returns integer
language sql immutable parallel safe
return ('x' || encode(substring(sha256(convert_to(lexeme, 'UTF8')) for 4), 'hex'))::bit(32)::integer;

create function folklore_length(search tsvector) returns smallint
language sql immutable parallel safe
return (
    select least(coalesce(sum(cardinality(array_remove(found.weights, 'C'))), 0), 32767)::smallint
    from unnest(search) as found
    where not starts_with(found.lexeme, '=')
);

create function folklore_named_words(search tsvector, happened timestamptz) returns table (word integer, frequency smallint)
language sql immutable parallel safe
begin atomic
    select folklore_word(found.lexeme), cardinality(array_remove(found.weights, 'C'))::smallint
    from unnest(folklore_named_words.search) as found
    where not starts_with(found.lexeme, '=') and cardinality(array_remove(found.weights, 'C')) > 0
    union all
    select folklore_word('@' || to_char(folklore_named_words.happened at time zone 'UTC', form)), 1::smallint
    from unnest(array['YYYY-MM-DD', 'MM-DD', 'YYYY-MM', 'MM', 'YYYY']) as form;
end;

create table fresh_words (
    namespace_id uuid not null,
    memory_id uuid not null,
    length smallint not null,
    words integer[] not null,
    frequencies bytea not null,
    constraint fresh_words_pkey primary key (namespace_id, memory_id)
);
alter table fresh_words alter column words set storage external;
alter table fresh_words enable row level security;
create policy fresh_words_read on fresh_words for select using (namespace_id in (select unnest(folklore_readable())));
create policy fresh_words_write on fresh_words for insert
    with check (namespace_id in (select unnest(folklore_writable())));

create table packed_namespaces (
    namespace_id uuid not null,
    documents integer not null,
    length bigint not null,
    next integer not null,
    dead integer not null,
    constraint packed_namespaces_pkey primary key (namespace_id),
    constraint packed_namespaces_namespace_fkey foreign key (namespace_id) references namespaces (id)
);

create table packed_memories (
    namespace_id uuid not null,
    block integer not null,
    first_id uuid not null,
    last_id uuid not null,
    ids bytea not null,
    lengths bytea not null,
    constraint packed_memories_pkey primary key (namespace_id, block)
);
alter table packed_memories alter column ids set storage plain, alter column lengths set storage plain;

create table postings (
    namespace_id uuid not null,
    word integer not null,
    block integer not null,
    documents integer not null,
    entries bytea not null,
    constraint postings_pkey primary key (namespace_id, word, block)
);
create index postings_word_idx on postings (word, namespace_id) include (documents) where block = 0;
alter table postings alter column entries set storage plain;

insert into fresh_words (namespace_id, memory_id, length, words, frequencies)
select m.namespace_id, m.id, folklore_length(m.search), named.words, named.frequencies
from memories m
cross join lateral (
    select array_agg(word) as words, string_agg(int2send(frequency), '') as frequencies
    from folklore_named_words(m.search, coalesce(m.occurred_at, m.created_at))
) named;

create function folklore_delete_postings(namespace uuid, ids uuid[]) returns void
language sql security definer
begin atomic
    delete from fresh_words f
    where f.namespace_id = folklore_delete_postings.namespace and f.memory_id = any(folklore_delete_postings.ids)
        and (select folklore_deletes(folklore_delete_postings.namespace, '{writer,admin}'));
    select from packed_namespaces p where p.namespace_id = folklore_delete_postings.namespace for update;
    update packed_namespaces p
    set documents = p.documents - gone.documents, length = p.length - gone.length, dead = p.dead + gone.documents
    from (
        select count(*)::integer as documents, coalesce(sum(('x' || encode(
            substring(m.lengths from place * 2 + 1 for 2), 'hex'))::bit(16)::integer), 0) as length
        from packed_memories m, generate_series(0, octet_length(m.ids) / 16 - 1) as place
        where m.namespace_id = folklore_delete_postings.namespace
            and exists (select from unnest(folklore_delete_postings.ids) as id where id between m.first_id and m.last_id)
            and substring(m.ids from place * 16 + 1 for 16)
                = any(array(select uuid_send(id) from unnest(folklore_delete_postings.ids) as id))
            and (select folklore_deletes(folklore_delete_postings.namespace, '{writer,admin}'))
    ) gone
    where p.namespace_id = folklore_delete_postings.namespace and gone.documents > 0;
    update packed_memories m
    set ids = (
        select string_agg(case
            when id = any(array(select uuid_send(id) from unnest(folklore_delete_postings.ids) as id))
            then decode(repeat('00', 16), 'hex') else id end, '' order by place)
        from generate_series(0, octet_length(m.ids) / 16 - 1) as place, substring(m.ids from place * 16 + 1 for 16) as id
    )
    where m.namespace_id = folklore_delete_postings.namespace
        and exists (select from unnest(folklore_delete_postings.ids) as id
            where id between m.first_id and m.last_id and position(uuid_send(id) in m.ids) > 0)
        and (select folklore_deletes(folklore_delete_postings.namespace, '{writer,admin}'));
end;

alter table packed_namespaces enable row level security;
create policy packed_namespaces_read on packed_namespaces for select
    using (namespace_id in (select unnest(folklore_readable())));

alter table packed_memories enable row level security;
create policy packed_memories_read on packed_memories for select
    using (namespace_id in (select unnest(folklore_readable())));

alter table postings enable row level security;
create policy postings_read on postings for select using (namespace_id in (select unnest(folklore_readable())));
