-- name: alive. True for a memory m in force, not expired and not worn out: visible without filters.
    m.forgotten_at is null
    and m.superseded_at is null
    and ({m.ends_at} is null or {m.ends_at} > :now::timestamptz)
    and ({m.effective_quality} is null or {m.effective_quality} >= :quality_floor::real)
-- include derived

-- name: changeable. The columns of a memory m that a revision can hold, as JSON by name.
jsonb_build_object(
        {m.field_values},
        'forgotten_at', m.forgotten_at, 'superseded_at', m.superseded_at, 'superseded_by', m.superseded_by,
        'changed_by', m.changed_by, 'changed_at', m.changed_at
    )

-- name: contradicting. True for a relation r of the type :contradicts between two memories in force, unless both are
-- kept (:kept, in any direction).
    r.type = :contradicts::text
    and (
        select count(*) from memories m
        where m.namespace_id = r.namespace_id and m.id in (r.from_id, r.to_id)
            and m.forgotten_at is null and m.superseded_at is null
    ) = 2
    and not exists (
        select from relations k
        where k.namespace_id = r.namespace_id and k.type = :kept::text
            and ((k.from_id, k.to_id) = (r.from_id, r.to_id) or (k.from_id, k.to_id) = (r.to_id, r.from_id))
    )

-- name: counted_at_once. counted_vectors (below) on a cluster, for all models at once: none may be asked after another.
    join (select e.model_id, count(*) as vectors from embeddings e group by e.model_id) counted on counted.model_id = m.id

-- name: counted_vectors. The number of vectors of a model m, up to :threshold.
    cross join lateral (
        select count(*) as vectors
        from (select from embeddings e where e.model_id = m.id limit :threshold::integer) bounded
    ) counted

-- name: cues_nearness. The cosine of the cues of the embedding v with :query.
        (-(v.cues <#> :query::halfvec))::real

-- name: cues_nearness_then. The same of the memory m with `as_of`, null if its cues have changed since.
        case when not 'cues' = any(m.changed) then (-(v.cues <#> :query::halfvec))::real end

-- name: derived. True for a memory m that is no reflection, or whose members are all visible and unchanged. A count,
-- so that the planner does not first build the set of all such memories.
    and (m.trust <> 'derived' or m.metadata->>'members' = (
        select count(*)::text
        from relations r
        join memories o on o.namespace_id = r.namespace_id and o.id = r.to_id
        where r.namespace_id = m.namespace_id and r.from_id = m.id and r.type = 'derived_from'
            and o.forgotten_at is null and o.superseded_at is null and o.updated_at <= m.updated_at
            and ({o.ends_at} is null or {o.ends_at} > :now::timestamptz)))

-- name: each. {statement} for each of :namespaces that has memories, whose words are packed or fresh: Citus asks all
-- shards at once.
select found.* from (
    select p.namespace_id from packed_namespaces p where p.namespace_id = any(:namespaces::uuid[])
    union
    select f.namespace_id from fresh_words f where f.namespace_id = any(:namespaces::uuid[])
) space cross join lateral ({statement}) found

-- name: empty. True for a namespace n without memories.
    (select m.id from memories m where m.namespace_id = n.id order by m.id limit 1) is null

-- name: empty_unknown. The same on a cluster, where no namespace may be asked after another: one without memories
-- counts as one with some.
    false

-- name: happened. What orders equal scores, where the results of several nodes are merged.
    , happened

-- name: leading_namespaces. The namespaces with the first rows, one of each: the first of all are among theirs.
    select n.id, :fetch::integer as most
    from (
        select n.id, 1 as most from namespaces n where n.id = any(:namespaces::uuid[])
    ) n
    cross join lateral (
        select m.sorted_by, m.id
-- include listed
    ) m
    order by m.sorted_by {order}, m.id {order} limit :fetch::integer

-- name: excluded_namespaces. The namespaces that a search of all but :namespaces leaves out: these and deleted ones. A
-- list of the thousands of others would be sorted for each table.
excluded_namespaces as materialized (
    select array(select id from namespaces where deleted_at is not null union all select unnest(:namespaces::uuid[])) as ids
),

-- name: linked. The :max_relations strongest relations of a memory `seed` with memories in force, in both directions.
    cross join lateral (
        select found.id, max(found.strength) as strength
        from (
            select r.to_id as id, r.strength from relations r
            where r.namespace_id = seed.namespace_id and r.from_id = seed.id
            union all
            select r.from_id, r.strength from relations r
            where r.namespace_id = seed.namespace_id and r.to_id = seed.id
        ) found
        cross join lateral (
            select from memories m
            where m.namespace_id = seed.namespace_id and m.id = found.id
                and m.forgotten_at is null and m.superseded_at is null
            limit 1  -- keeps the planner from joining all of memories
        ) in_force
        group by found.id
        order by strength desc, found.id
        limit :max_relations::integer
    ) linked

-- name: listed. The first n.most memories m of the namespace n in an order, from a sort key on. Those that were not
-- changed, rated, pinned or recalled since have the same place in every order, and one index; so each order reads two
-- indexes.
    from (
        (
            select
-- include record
                , {m.order_time} as sorted_by
            from (
-- include state
-- include of_namespace
                and o.trending is null
            ) m
            where
-- include visible
                and ({m.order_time}, m.id) {beyond} (
                    coalesce(:after_time::timestamptz, '{first}'), coalesce(:after_id::uuid, uuid '00000000-0000-0000-0000-000000000000'))
            order by {m.order_time} {order}, m.id {order} limit n.most
        )
        union all
        (
            select
-- include record
                , {sorted_by}
            from (
-- include state
-- include of_namespace
                and o.trending is not null
            ) m
            where
-- include visible
                and ({sorted_by}, m.id) {beyond} (
                    coalesce(:after_time::timestamptz, '{first}'), coalesce(:after_id::uuid, uuid '00000000-0000-0000-0000-000000000000'))
            order by {sorted_by} {order}, m.id {order} limit n.most
        )
    ) m
    order by m.sorted_by {order}, m.id {order} limit n.most

-- name: listed_namespace. The only namespace, as a value that a plan knows.
    select n.id, :fetch::integer as most from (select (:namespaces::uuid[])[1] as id) n
    where n.id = any(:namespaces::uuid[])

-- name: listed_namespaces
    select n.id, :fetch::integer as most from namespaces n where n.id = any(:namespaces::uuid[])

-- name: matching
    o.search @@ :expression::tsquery

-- name: matching_token. The same as matching for a token: row-level security would not let `@@` use the index.
    (o.namespace_id, o.id) in (
        select held.namespace_id, held.id from folklore_matching(:namespaces::uuid[], :expression::tsquery) held
    )

-- name: near_by_cues. The memories nearest to :query by their cues.
    union all
    (
        select e.namespace_id, e.memory_id, -(e.cues <#> :query::halfvec)
        from embeddings e
        where e.namespace_id = any(:namespaces::uuid[]) and e.model_id = '{model}' and e.cues is not null
        order by e.cues::halfvec({dimensions}) <#> :query::halfvec
        limit :scan::integer
    )

-- name: nearness. The cosine of the embedding e with :query, that of the cues if it is greater. With `as_of` the cues may
-- have been others then: the pool compares with those that have not changed since (cues_nearness_then).
        -least(e.vector <#> :query::halfvec, e.cues <#> :query::halfvec)

-- name: newest_embeddings
    select e.memory_id, e.vector
    from embeddings e
    where e.namespace_id = :namespace::uuid and e.model_id = :model::uuid and e.passage = 0
    order by e.memory_id desc
    limit :newest::integer

-- name: newest_vectors. The :newest embeddings of whole texts of the namespace, kept, to be compared with several.
newest as materialized (
-- include newest_embeddings
),

-- name: newest_vectors_once. The same, to be compared with one: keeping 3,000 vectors takes three times as long as
-- reading them.
newest as not materialized (
-- include newest_embeddings
),

-- name: of_namespace
            where o.namespace_id = n.id

-- name: of_namespaces
            where o.namespace_id = any(:namespaces::uuid[])

-- name: included_namespaces. The namespaces that a search of all but :namespaces reads: the others.
included_namespaces as materialized (
    select array(select id from namespaces where deleted_at is null and id <> all(:namespaces::uuid[])) as ids
),

-- name: pool_no_vectors. In place of pool_vectors if no vectors are compared: embeddings are not read, so no lock
-- on them can stop this.
cross join (
    select null::halfvec as vector, null::smallint as length, null::smallint[] as passages, null::real[] as cosines,
        null::real as nearness_of_cues
) e

-- name: pool_vectors. The vector of a memory in :model, null while its embedding is pending, and the passages of a
-- long text in order, each as {begin, end, length}, with their cosines to the question :query; and that of its cues,
-- null without any. (Scalar subqueries: a join would cost a short text as much.)
left join lateral (
    select v.vector, v.length,
        case when v.passages > 0 then (
            select array_agg(array[p.begins, p.ends, p.length] order by p.passage)
            from embeddings p
            where p.namespace_id = member.namespace_id and p.model_id = :model::uuid and p.memory_id = member.id
                and p.passage > 0
        ) end as passages,
        case when v.passages > 0 then (
            select array_agg((-(p.vector <#> :query::halfvec))::real order by p.passage)
            from embeddings p
            where p.namespace_id = member.namespace_id and p.model_id = :model::uuid and p.memory_id = member.id
                and p.passage > 0
        ) end as cosines,
-- include cues_nearness
        as nearness_of_cues
    from embeddings v
    where v.namespace_id = member.namespace_id and v.model_id = :model::uuid and v.memory_id = member.id
        and v.passage = 0
-- include unaltered
    limit 1
) e on true

-- name: ranked. The :fetch best visible memories of `ranked` (namespace_id, memory_id, score).
cross join lateral (
    select from (
-- include state
        where o.namespace_id = ranked.namespace_id and o.id = ranked.memory_id
    ) m
    where
-- include visible
-- include unaltered
    limit 1  -- keeps the planner from joining all of memories first
) seen
order by ranked.score desc, ranked.memory_id
limit :fetch::integer

-- name: ranked_satisfying. In place of ranked: those that satisfy :expression by their text and their cues together.
cross join lateral (
    select from (
-- include state
        where o.namespace_id = ranked.namespace_id and o.id = ranked.memory_id
    ) m
    where
-- include visible
-- include unaltered
        and (m.search || folklore_lexemes(m.language, array_to_string(m.cues, ' . '))) @@ :expression::tsquery
    limit 1
) seen
order by ranked.score desc, ranked.memory_id
limit :fetch::integer

-- name: recalled. The columns of a recall as an event: all memories of one namespace in one answer, which has one time.
            select u.used_at, u.answer_id, min(u.caller), null, 'recall', count(*)::integer,
                (array_agg(u.memory_id order by u.rank))[1:5]
            from usage u
            where u.namespace_id = n.id and 'recall' = any(:actions::text[])
                and (:author::text is null or lower(u.caller collate "C") = lower(:author::text collate "C"))

-- name: record. The columns of a memory m that answers need.
    m.namespace_id, m.id, {m.fields}, m.position, m.author, m.agent, m.quality, m.created_at, m.updated_at,
    m.forgotten_at, m.superseded_at, m.superseded_by, m.last_recalled_at, m.recall_count, m.revision,
    m.changed_by, m.changed_at

-- name: restated
        author = d.author, agent = d.agent, created_at = d.created_at, last_recalled_at = d.last_recalled_at,
        recall_count = d.recall_count,

-- name: space. The namespace of new rows.
    :namespace::uuid

-- name: space_of_row. The same on a cluster, from the row that `space_row` joins.
    packed.namespace_id

-- name: space_row. A row in the shard of the namespace, on a cluster: an insert that reads the namespace from it is
-- sent whole to the node.
cross join packed_namespaces packed where packed.namespace_id = :namespace::uuid

-- name: state. The memories o, each as it is now.
    select o.* from memories o

-- name: state_as_of. The memories o, each as it was at :as_of, and `changed`, the columns that were written since. A
-- memory that was stored later is as it is now.
    select was.*, past.changed
    from memories o
    -- The former values: of the revisions written since, the oldest gives the value of a column.
    cross join lateral (
        select coalesce(jsonb_object_agg(held.key, held.value order by r.revision desc), '{}') as former,
            coalesce(array_agg(held.key), '{}') as changed,
            coalesce(bool_or(r.action = 'expire' and r.changed_at = o.forgotten_at), false) as expired
        from revisions r
        cross join lateral jsonb_each(r.before) as held
        where r.namespace_id = o.namespace_id and r.memory_id = o.id
            and o.created_at <= :as_of::timestamptz and r.changed_at > :as_of::timestamptz
    ) past
    -- When, and by what, it had been superseded.
    cross join lateral (
        select
            case when past.former ? 'superseded_at' then (past.former ->> 'superseded_at')::timestamptz
                else o.superseded_at end as superseded_at,
            case when past.former ->> 'superseded_at' is null then o.superseded_by
                else (past.former ->> 'superseded_by')::uuid end as superseded_by
    ) replaced
    -- It counts as superseded if it was then, or if its successor says that it was true by then (occurred_at), whenever
    -- that was stored.
    cross join lateral (
        select coalesce((
            select s.occurred_at from memories s
            where s.namespace_id = o.namespace_id and s.id = replaced.superseded_by
        ), replaced.superseded_at) <= :as_of::timestamptz as yet
    ) over
    -- The columns that were written, and then with those that follow from them: words, order, beginnings of tags.
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
        -- One that was forgotten since is shown to a caller who could restore it, and to all if it only expired. The
        -- role tells the owner from a token everywhere: a worker of a cluster does not get the key of a token.
        || case when o.forgotten_at is null or past.expired or current_user <> 'folklore_app'
                or o.namespace_id = any((select folklore_writable())::uuid[])
            then '{}' else jsonb_build_object('forgotten_at', o.forgotten_at) end
    ) as was

-- name: transfer_columns. :memories a JSON array with one object for each memory, its past included.
select * from jsonb_to_recordset(:memories::jsonb) as d (
    id uuid, {field_types}, step integer, author text, agent text, quality real, trust text, created_at timestamptz,
    updated_at timestamptz, forgotten_at timestamptz, superseded_at timestamptz, last_recalled_at timestamptz,
    recall_count integer, confirmed_count integer, revision integer, digest text, idempotency_key text,
    changed_by text, changed_at timestamptz
)

-- name: unaltered. True for a memory m whose searched columns have not changed since :as_of: what is indexed is what
-- it was then.
    and not m.changed && :searched::text[]

-- name: unused. True for a memory m in force that nothing has recalled, changed or confirmed since :before. Pinned
-- ones are in use; so is one whose metadata has a date of a review (:reviewed) that is not older.
    not m.pinned and m.trust <> 'derived'
    and m.forgotten_at is null and m.superseded_at is null
    and ({m.ends_at} is null or {m.ends_at} > :now::timestamptz)
    and greatest(m.created_at, m.updated_at, m.last_recalled_at, m.confirmed_at) < :before::timestamptz
    and coalesce(m.metadata->>:reviewed::text, '') < :day::text

-- name: visible. True for a memory m that the filters let through; a null parameter filters nothing.
    m.forgotten_at is null
    and (:as_of::timestamptz is null or coalesce(m.occurred_at, m.created_at) <= :as_of::timestamptz)
    and (:include_superseded::boolean or m.superseded_at is null)
    and ({m.ends_at} is null or {m.ends_at} > coalesce(:as_of::timestamptz, :now::timestamptz))
    and case when :faded::boolean then {m.effective_quality} < :quality_floor::real
        else {m.effective_quality} is null or {m.effective_quality} >= :quality_floor::real end
    and (:reflections::boolean is null or (m.kind = 'reflection') = :reflections::boolean)
-- include derived
    and (:kinds::text[] is null or m.kind = any(:kinds::text[]))
    and (:tags::text[] is null or case
        when :tag_exact::boolean and :tag_all::boolean then m.tags @> :tags::text[]
        when :tag_exact::boolean then m.tags && :tags::text[]
        when :tag_all::boolean then m.tag_prefixes @> :tags::text[]
        else m.tag_prefixes && :tags::text[] end)
    and (:exclude_tags::text[] is null or not case
        when :tag_exact::boolean then m.tags && :exclude_tags::text[]
        else m.tag_prefixes && :exclude_tags::text[] end)
    and (:negations::text is null or m.search @@ :negations::tsquery)
    and (:source_prefix::text is null or starts_with(m.source, :source_prefix::text))
    {m.field_filters}
    and (:author::text is null or m.author = :author::text or m.changed_by = :author::text)
-- The root of the repository (.) has all paths below it, but not those outside: absolute ones, ~ and ..
    and (:paths::text[] is null or exists (
        select from unnest(m.paths) held, unnest(:paths::text[]) requested
        where held = requested or starts_with(held, requested || '/')
            or (requested = '.' and held !~ '^(/|~|[.][.](/|$)|[A-Za-z]:(/|$))')))
    and (:metadata::jsonpath is null or coalesce(m.metadata, '{}') @@ :metadata::jsonpath)
    and (:since::timestamptz is null or coalesce(m.occurred_at, m.created_at) >= :since::timestamptz)
    and (:until::timestamptz is null or coalesce(m.occurred_at, m.created_at) < :until::timestamptz)

-- name: weighed. The score of a memory `candidate` (search, length, dated) for :lexemes, each a tsquery, with its weight
-- of :weights and its stem of :stems, where only memories without the stem count (BM25: Robertson and Zaragoza 2009,
-- equation 3.15; :saturation is k1, :flat k1 * (1 - b), and :growth k1 * b / mean length); mass is the sum of the
-- weights without date terms and cues. A word of cues, after '~', counts once, whatever the length. This serves what no
-- postings can: words of former texts, which have none, and expressions, whose index yields ids of up to 10,000 memories,
-- of which postings have no ids, and whose lengths are estimated, so that scores by postings would be others. The
-- frequency n of a word comes from ts_rank: the sum of 1 / i^2 for i from 1 to n, as a share of the sum without end,
-- pi^2 / 6, from which about 1 / (n + 0.5) is missing. Unnesting a tsvector takes twenty times as long.
cross join lateral (
    select sum(sought.weight * (:saturation::float8 + 1) * found.frequency
            / (found.frequency + case when starts_with(sought.lexeme, '''~') then :saturation::float8
                else :flat::float8 + :growth::float8 * candidate.length end)) as score,
        sum(case when left(sought.lexeme, 2) in ('''@', '''~') then 0 else sought.weight end) as mass
    from unnest(:lexemes::text[], :weights::float8[], :stems::text[]) as sought (lexeme, weight, stem)
    cross join lateral (
        select case when starts_with(sought.lexeme, '''@') then (sought.lexeme = any(array(
                select quote_literal('@' || to_char(candidate.dated at time zone 'UTC', form))
                from unnest(array['YYYY-MM-DD', 'MM-DD', 'YYYY-MM', 'MM', 'YYYY']) as form
            )))::integer
            when starts_with(sought.lexeme, '''~') then (candidate.search @@ sought.lexeme::tsquery)::integer
            else round(6 / (pi() ^ 2 * (1 - ts_rank('{1, 0, 1, 1}', candidate.search, sought.lexeme::tsquery))) - 0.5)
        end as frequency
        offset 0  -- computes it once
    ) found
    where found.frequency > 0 and (sought.stem is null or not candidate.search @@ sought.stem::tsquery)
) weighed

-- name: with_cues. The words of a memory m, and those of its cues after '~'.
        case when m.cues = '{}' then m.search else m.search || folklore_cues(m.language, m.cues) end

-- name: without_vector. The keys are compared first, from two indexes alone: only memories without an embedding are
-- read.
    , (select count(*) from (
        select from (
            select m.id
            from memories m
            where m.namespace_id = n.id
                and not exists (
                    select from embeddings e
                    where e.namespace_id = n.id and e.model_id = :model::uuid and e.memory_id = m.id and e.passage = 0
                )
            offset 0
        ) missing
        join memories o on o.namespace_id = n.id and o.id = missing.id
        where o.forgotten_at is null and o.superseded_at is null
        limit 50000
    ) bounded) as pending_embeddings

-- name: write. The columns of a write a as an event.
            select a.at, a.id, a.principal as author, a.agent, a.action, a.amount, a.ids[1:5] as memories
            from audit a
            where a.namespace_id = n.id and a.action = any(:actions::text[]) and a.outcome = 'done'
                and (:author::text is null or lower(a.principal collate "C") = lower(:author::text collate "C"))
