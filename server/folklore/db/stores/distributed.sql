-- name: namespaces_list
select n.id, n.name, n.description, n.language, n.languages, n.shared, n.created_at, n.deleted_at, n.deleted_by,
    least(coalesce(counted.memories, 0), 50000) as memories
from namespaces n
left join (
    select m.namespace_id, count(*) as memories from memories m
    where m.forgotten_at is null and (:within::uuid[] is null or m.namespace_id = any(:within::uuid[]))
    group by m.namespace_id
) counted on counted.namespace_id = n.id
where (n.deleted_at is not null) = :deleted::boolean and (:within::uuid[] is null or n.id = any(:within::uuid[]))
order by n.name

-- name: namespaces_status
select n.name, n.shared, least(coalesce(counted.memories, 0), 50000) as memories,
    case when :model::uuid is null then 0 else least(coalesce(counted.bare, 0), 50000) end as pending_embeddings
from namespaces n
left join (
    select m.namespace_id, count(*) as memories, count(*) filter (where m.superseded_at is null and e.memory_id is null) as bare
    from memories m
    left join embeddings e on e.namespace_id = m.namespace_id and e.memory_id = m.id and e.passage = 0
        and e.model_id = coalesce(:model::uuid, '00000000-0000-0000-0000-000000000001') -- of null no join would be left
    where m.forgotten_at is null and (:within::uuid[] is null or m.namespace_id = any(:within::uuid[]))
    group by m.namespace_id
) counted on counted.namespace_id = n.id
where n.deleted_at is null and (:within::uuid[] is null or n.id = any(:within::uuid[]))
order by n.name

-- name: postings_due. The pages of the table are those of its shards, each of which has few: none are counted.
select coalesce(counted.namespace_id, packed.namespace_id) as namespace, coalesce(counted.fresh, 0) as fresh,
    coalesce(packed.dead, 0) as dead, 0::bigint as pages
from (
    select f.namespace_id, least(count(*), :most::integer) as fresh from fresh_words f group by f.namespace_id
) counted
full join (
    select p.namespace_id, p.dead from packed_namespaces p where p.dead > 0 and 9 * p.dead >= p.documents
) packed on packed.namespace_id = counted.namespace_id
order by fresh desc, namespace

-- name: recall_extent. The number of packed memories in the form of a plan: a plan of a cluster estimates no rows.
select json_build_array(json_build_object('Plan', json_build_object('Plan Rows', coalesce(sum(p.documents), 0))))::text
from packed_namespaces p
where p.namespace_id = any(:namespaces::uuid[]) and :model::uuid is not null

-- name: recall_indexed. An index of a distributed table is empty on the coordinator; there are as many vectors as packed memories.
select (select sum(p.documents) from packed_namespaces p) as vectors, coalesce((
        select o.indisvalid from pg_index o where o.indexrelid = to_regclass(:of_cues::text)
    ), false) as of_cues
from pg_index x
where x.indexrelid = to_regclass(:name::text) and x.indisvalid

-- name: recall_lexemes_of_each. The postings of :hashes, those of lexemes, and the fresh ones in each namespace, as in recall/lexemes.
select p.*, f.*, coalesce(n.documents, 0) as total, coalesce(n.length, 0) as length
from (select * from packed_namespaces where namespace_id = any(:namespaces::uuid[])) n
left join (
    select o.namespace_id, array_agg(o.namespace_id) as spaces, array_agg(o.word) as hashes, array_agg(o.word) as rare,
        array_agg(o.documents) as documents, array_agg(case when (8 - 4 * (o.word & 1)) * o.documents <= octet_length(o.entries) then o.entries else (
            select string_agg(a.entries, '') from postings a
            where a.namespace_id = o.namespace_id and a.namespace_id = any(:namespaces::uuid[]) and a.word = o.word
        ) end) as entries
    from postings o
    where o.word = any(:hashes::integer[]) and o.namespace_id = any(:namespaces::uuid[]) and o.block = 0
    group by o.namespace_id
) p on p.namespace_id = n.namespace_id
full join (
    select namespace_id, string_agg(uuid_send(namespace_id), '') as fresh_spaces, string_agg(uuid_send(memory_id), '') as fresh_ids,
        string_agg(int2send(length), '') as fresh_lengths, string_agg(int4send(octet_length(words) / 4), '') as fresh_counts,
        string_agg(words, '') as fresh_hashes, string_agg(frequencies, '') as fresh_frequencies
    from fresh_words where namespace_id = any(:namespaces::uuid[])
    group by namespace_id
) f on f.namespace_id = n.namespace_id
