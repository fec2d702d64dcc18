-- name: dense. The :fetch nearest memories by exact search. Vectors have length 1, so that the inner product is the
-- cosine. The scan reads the narrow table alone; visibility is checked in order of cosine, until enough memories are
-- found. :scan limits how many are checked; null checks all. A memory counts with its best passage: of :scan passages
-- some belong to the same memory.
with
-- include included_namespaces
scored as (
    select e.namespace_id, e.memory_id,
-- include nearness
        as score
    from embeddings e
    where e.namespace_id = any(:namespaces::uuid[]) and e.model_id = :model::uuid
)
select ranked.memory_id as id, ranked.score, ranked.score as mass, ranked.namespace_id
from (
    select namespace_id, memory_id, max(score) as score
    from (
        select namespace_id, memory_id, score from scored  -- no vector, which the sort would copy for every row
        order by score desc, memory_id
        limit :scan::integer
    ) passages
    group by memory_id, namespace_id
    order by score desc, memory_id
) ranked
-- include ranked

-- name: expand. Memories beyond the results :ids. If :bridges, those with relations to at least two of them (at most
-- :max_relations relations of each result are followed), by the sum of the strengths; and those with a tag of
-- :entities, by the number of such tags, then by importance. With several :hops, also the ends of chains of relations
-- of at least :least_strength, by the product of their strengths: of each hop the :most * 4 best.
with seed as materialized (
    select m.namespace_id, m.id from memories m
    where m.namespace_id = any(:namespaces::uuid[]) and m.id = any(:ids::uuid[])
),
link as materialized (
    select seed.namespace_id, linked.id, linked.strength
    from seed
-- include linked
    where :bridges::boolean and linked.strength >= :least_strength::real
),
first as (
    select link.namespace_id, link.id, max(link.strength)::float8 as score
    from link
    where :hops::integer > 1
    group by link.namespace_id, link.id
    order by score desc, link.id
    limit 4 * :most::integer
),
second as (
    select seed.namespace_id, linked.id, max(seed.score * linked.strength) as score
    from first seed
-- include linked
    where linked.strength >= :least_strength::real
    group by seed.namespace_id, linked.id
    order by score desc, linked.id
    limit 4 * :most::integer
),
third as (
    select seed.namespace_id, linked.id, max(seed.score * linked.strength) as score
    from second seed
-- include linked
    where :hops::integer > 2 and linked.strength >= :least_strength::real
    group by seed.namespace_id, linked.id
    order by score desc, linked.id
    limit 4 * :most::integer
),
chain as (
    select reached.namespace_id, reached.id, 'relations' as by, max(reached.score) as score
    from (select * from first union all select * from second union all select * from third) reached
    group by reached.namespace_id, reached.id
),
bridge as (
    select link.namespace_id, link.id, 'relations' as by, sum(link.strength)::float8 as score
    from link
    group by link.namespace_id, link.id
    having count(*) >= 2
),
related as (
    select bridge.* from bridge
    union all
    select chain.* from chain
    where not exists (select from bridge where bridge.namespace_id = chain.namespace_id and bridge.id = chain.id)
),
named as (
    select m.namespace_id, m.id, 'entities' as by,
        cardinality(array(select unnest(m.tags) intersect select unnest(:entities::text[])))
            + coalesce(m.importance, 0.5)::float8 as score
    from memories m
    where m.namespace_id = any(:namespaces::uuid[]) and m.tag_prefixes && :entities::text[] and m.tags && :entities::text[]
        and (m.forgotten_at is null and m.superseded_at is null or :include_superseded::boolean or :as_of::timestamptz is not null)
    order by score desc, m.id
    limit :most::integer + cardinality(:ids::uuid[])
),
further as (
    select related.* from related
    union all
    select named.* from named
    where not exists (select from related where related.namespace_id = named.namespace_id and related.id = named.id)
)
select
-- include record
    , further.by, further.score
from further
cross join lateral (
-- include state
    where o.namespace_id = further.namespace_id and o.id = further.id
    limit 1
) m
where m.namespace_id = any(:namespaces::uuid[]) and m.id <> all(:ids::uuid[]) and
-- include visible
order by further.by desc, further.score desc, m.id
limit :most::integer

-- name: expression. The memories that satisfy the tsquery :expression, best first: by the weight of the lexemes they
-- contain, then the newest. If very many match (a short prefix), the :bound newest are ranked. Their lengths are
-- estimated, at eight bytes a lexeme: counting the positions of a tsvector takes longer than all else.
with satisfying as materialized (
    select m.namespace_id, m.id, m.search, {m.order_time} as happened,
        coalesce(m.occurred_at, m.created_at) as dated, octet_length(m.content) / 8 as length
    from (
-- include state
        where o.namespace_id = any(:namespaces::uuid[])
            and
-- include matching
    ) m
    where
-- include visible
-- include unaltered
    order by happened desc, m.id
    limit :bound::integer
)
select candidate.id, coalesce(weighed.score, 0) as score, coalesce(weighed.mass, 0) as mass, candidate.namespace_id
-- include happened
from satisfying candidate
-- include weighed
order by score desc, candidate.happened desc, candidate.id
limit :fetch::integer

-- name: extent. The planner's estimate of the number of vectors in these namespaces: it reads statistics, no vector.
explain (format json)
select from embeddings e where e.namespace_id = any(:namespaces::uuid[]) and e.model_id = :model::uuid

-- name: few. At most :most of the memories that the filters let through.
select m.id, m.namespace_id
from (
-- include state
    where o.namespace_id = any(:namespaces::uuid[])
) m
where
-- include visible
limit :most::integer

-- name: few_vectors. The :fetch nearest of the memories :ids, as recall/dense.
select e.memory_id as id, max(
-- include nearness
    ) as score, max(
-- include nearness
    ) as mass, e.namespace_id
from embeddings e
where e.namespace_id = any(:namespaces::uuid[]) and e.model_id = :model::uuid and e.memory_id = any(:ids::uuid[])
group by e.memory_id, e.namespace_id
order by score desc, id
limit :fetch::integer

-- name: few_numbers. The numbers of those of the memories :ids that are packed.
select given.id, p.namespace_id, p.block * 256 + (found.position - 1) / 16 as number
from unnest(:ids::uuid[]) as given (id)
join packed_memories p on p.namespace_id = any(:namespaces::uuid[]) and given.id between p.first_id and p.last_id
cross join lateral (select position(uuid_send(given.id) in p.ids) as position) found
where found.position % 16 = 1

-- name: former. The :fetch best memories by the words that they had at :as_of and that a change of the columns
-- :searched has replaced since. Such words are in no index: they are read from revisions again, for the memories of
-- the first :bound such changes. If :expression, those that satisfy it; else those that hold any of :lexemes.
with altered as materialized (
    select distinct change.namespace_id, change.memory_id as id
    from (
        select r.namespace_id, r.memory_id
        from revisions r
        where r.namespace_id = any(:namespaces::uuid[]) and r.changed_at > :as_of::timestamptz
            and r.before ?| :searched::text[]
        order by r.changed_at
        limit :bound::integer
    ) change
),
former as materialized (
    select m.namespace_id, m.id, {m.order_time} as happened, coalesce(m.occurred_at, m.created_at) as dated,
        folklore_length(m.search) as length,
-- include with_cues
        as search
    from altered
    cross join lateral (
-- include state_as_of
        where o.namespace_id = altered.namespace_id and o.id = altered.id
        limit 1  -- keeps the planner from joining all of memories
    ) m
    where m.changed && :searched::text[] and
-- include visible
)
select candidate.id, coalesce(weighed.score, 0) as score, coalesce(weighed.mass, 0) as mass, candidate.namespace_id
-- include happened
from former candidate
-- include weighed
where case when :expression::tsquery is null then weighed.score is not null else candidate.search @@ :expression::tsquery end
order by score desc, candidate.happened desc, candidate.id
limit :fetch::integer

-- name: function_words. The memories that contain any of :words, lexemes after '=' (folklore_words) of a query of
-- function words alone, which have no postings: first those with the most words, then the newest. If more than :bound
-- match, the newest are ranked; before them, those that contain one of :capitals, words of the query with an
-- upper-case letter. Each word has the weight :weight; mass and bits are those of recall/keyword.
with matched as materialized (
    select m.namespace_id, m.id, m.search, {m.order_time} as happened, (
            select count(*) from unnest(:capitals::text[]) as typed (word) where strpos(m.content, typed.word) > 0
        ) as typed
    from (
-- include state
        where o.namespace_id = any(:namespaces::uuid[])
            and
-- include matching
    ) m
    where
-- include visible
-- include unaltered
    order by typed desc, happened desc, m.id
    limit :bound::integer
)
select matched.id, :weight::float8 * (found.words + matched.typed) as score, :weight::float8 * found.words as mass,
    matched.namespace_id, found.bits
-- include happened
from matched
cross join lateral (
    select count(*) as words, bit_or(1::bigint << (sought.bit - 1)::integer) as bits
    from unnest(:expressions::text[]) with ordinality as sought (expression, bit)
    where matched.search @@ sought.expression::tsquery and sought.bit <= 62
) found
order by score desc, matched.happened desc, matched.id
limit :fetch::integer

-- name: indexed. The number of vectors in the HNSW index :name, about; no row without a valid one. And if that of cues,
-- :of_cues, is valid too.
select c.reltuples as vectors, coalesce((
        select o.indisvalid from pg_index o where o.indexrelid = to_regclass(:of_cues::text)
    ), false) as of_cues
from pg_index x
join pg_class c on c.oid = x.indexrelid
where x.indexrelid = to_regclass(:name::text) and x.indisvalid

-- name: keyword. The :fetch best visible memories among candidates in order: :spaces, :numbers (of packed ones), :ids
-- (of fresh ones), :scores and :masses belong together. The id of a number that was retired since is that of no
-- memory.
select ranked.memory_id as id, ranked.score, ranked.mass, ranked.namespace_id
from (
    select given.namespace_id, given.score, given.mass, coalesce(given.id, (
            select encode(substring(p.ids from given.number % 256 * 16 + 1 for 16), 'hex')::uuid
            from packed_memories p
            where p.namespace_id = given.namespace_id and p.namespace_id = any(:namespaces::uuid[])
                and p.block = given.number / 256
        )) as memory_id
    from unnest(:spaces::uuid[], :numbers::integer[], :ids::uuid[], :scores::float8[], :masses::float8[])
        as given (namespace_id, number, id, score, mass)
    offset 0  -- row-level security lets no expression into the condition of an index
) ranked
-- include ranked

-- name: nearest. The :fetch nearest memories through the HNSW indexes over all vectors of {model}, those of texts and
-- those of cues, which have {dimensions} dimensions: recall/nearest:256:<id>. An index passes over other namespaces until it has found the
-- :scan best passages; a memory counts with its best one as in recall/dense, and hidden memories are left out. Nearly
-- exact; it may return fewer than :fetch. The model is part of the text, so that a kept plan may use the indexes, which
-- are over this model alone. Without them the result is the same, but slower.
with
-- include excluded_namespaces
near as (
    (
        select e.namespace_id, e.memory_id, -(e.vector <#> :query::halfvec) as score
        from embeddings e
        where e.namespace_id = any(:namespaces::uuid[]) and e.model_id = '{model}'
        order by e.vector::halfvec({dimensions}) <#> :query::halfvec
        limit :scan::integer
    )
-- include near_by_cues
)
select ranked.memory_id as id, ranked.score, ranked.score as mass, ranked.namespace_id
from (
    select near.namespace_id, near.memory_id, max(near.score) as score
    from near
    group by near.memory_id, near.namespace_id
    order by score desc, near.memory_id
) ranked
-- include ranked

-- name: pool. The candidates :ids; memories at most :reach positions from one of :spreading (candidates too) in its
-- session; and, if :related, the :max_relations strongest relations of each of them. Whole memories with their vectors
-- in :model (raw halfvec bytes; null while pending), their length in lexemes, the passages of long ones, the ids of
-- related :spreading with the strengths, the ids of visible memories that contradict them, and of :ids to which another
-- relation leads from them: both hold. Memories that were
-- forgotten since the branches ran are left out. Each memory is looked up by its key: a join, whose order the planner
-- may change, may read all memories.
with seed as materialized (
    select m.namespace_id, m.id, m.session, m.position
    from memories m
    where m.namespace_id = any(:namespaces::uuid[]) and m.id = any(:ids::uuid[])
),
link as materialized (
    select seed.namespace_id, linked.id, seed.id as source, linked.strength
    from seed
-- include linked
    where :related::boolean and seed.id = any(:spreading::uuid[])
),
member as materialized (
    select seed.namespace_id, seed.id from seed
    union
    select near.namespace_id, near.id
    from seed
    cross join lateral (
        select m.namespace_id, m.id
        from memories m
        where m.namespace_id = seed.namespace_id and m.session = seed.session
            and m.position between seed.position - :reach::integer and seed.position + :reach::integer
        offset 0
    ) near
    where :reach::integer > 0 and seed.id = any(:spreading::uuid[])
    union
    select link.namespace_id, link.id from link
),
opposed as materialized (
    select pair.id, array_agg(distinct pair.other order by pair.other) as ids
    from (
        select r.namespace_id, r.from_id as id, r.to_id as other
        from relations r
        where r.namespace_id = any(:namespaces::uuid[]) and r.from_id = any(:ids::uuid[]) and r.type = 'contradicts'
        union all
        select r.namespace_id, r.to_id, r.from_id
        from relations r
        where r.namespace_id = any(:namespaces::uuid[]) and r.to_id = any(:ids::uuid[]) and r.type = 'contradicts'
    ) pair
    cross join lateral (
        select from memories m
        where m.namespace_id = pair.namespace_id and m.id = pair.other
            and
-- include alive
        limit 1  -- keeps the planner from joining all of memories
    ) seen
    group by pair.id
),
joined as materialized (
    select r.from_id as id, array_agg(r.to_id order by r.to_id) as ids
    from relations r
    where r.namespace_id = any(:namespaces::uuid[]) and r.from_id = any(:ids::uuid[]) and r.to_id = any(:ids::uuid[])
        and r.type <> 'contradicts'
    group by r.from_id
)
select
-- include record
    , halfvec_send(e.vector) as vector, e.length, e.passages, e.cosines, e.nearness_of_cues, linked.sources, linked.strengths, opposed.ids as contradicts
    , joined.ids as both_hold
from member
cross join lateral (
-- include state
    where o.namespace_id = member.namespace_id and o.id = member.id
    limit 1
) m
-- include pool_vectors
left join lateral (
    select array_agg(link.source order by link.source) as sources, array_agg(link.strength order by link.source) as strengths
    from link
    where link.id = member.id
) linked on true
left join opposed on opposed.id = member.id
left join joined on joined.id = member.id
where
-- include visible

-- name: terms. The forms of the terms :terms of an expression, each for its column in :columns ('' for any), in each
-- of :languages: the lexemes of a form in order with their positions (a gap is a word without a lexeme). A function
-- word has itself after '=' (folklore_words). Where words have two lexemes, with and without accents, there is a form
-- of each. A term that is one name has further forms as a whole: as a compound, and if it has a hyphen or slash, as a word
-- of each language. Tags and sources are stored as they are spelled, in no language: terms for them are read so, and a
-- term for any column gets that as one more form unless it has function words alone. In that form stems has for each
-- lexeme its stem (itself if a language keeps it; null for a function word).
with term as (
    select given.text, given.field, given.number
    from unnest(:terms::text[], :columns::text[]) with ordinality as given (text, field, number)
),
word as materialized (
    select term.number, spoken.language, found.lexeme, position,
        row_number() over (partition by term.number, spoken.language, position order by found.lexeme) as variant,
        count(*) over (partition by term.number, spoken.language, position) as variants
    from term
    cross join unnest(:languages::text[]) as spoken (language)
    cross join lateral unnest(folklore_words(spoken.language, term.text, spelled => false)) as found
    cross join lateral unnest(found.positions) as position
    where term.field not in ('tag', 'source') and (char_length(found.lexeme) > 1 or ascii(found.lexeme) < 3584)
),
spelled as materialized (
    select term.number, term.field, found.lexeme, position
    from term
    cross join lateral unnest(folklore_words('pg_catalog.simple', term.text)) as found
    cross join lateral unnest(found.positions) as position
),
form as materialized (
    select spelled.number, 'words of ' || spoken.language || ' ' || reading.variant as reading,
        coalesce(word.lexeme, '=' || ltrim(spelled.lexeme, '=')) as lexeme, spelled.position, null as stem
    from spelled
    cross join unnest(:languages::text[]) as spoken (language)
    cross join generate_series(1, 2) as reading (variant)
    left join word on word.number = spelled.number and word.language = spoken.language
        and word.position = spelled.position and word.variant = least(reading.variant, word.variants)
    where spelled.field not in ('tag', 'source')
        and (reading.variant = 1 or exists (
            select from word w where w.number = spelled.number and w.language = spoken.language and w.variants > 1))
    union all
    select number, 'words', lexeme, position, null from spelled where field in ('tag', 'source')
    union all
    select spelled.number, 'spelled', spelled.lexeme, spelled.position,
        case when bool_or(word.lexeme = spelled.lexeme) then spelled.lexeme else min(word.lexeme) end
    from spelled
    left join word on word.number = spelled.number and word.position = spelled.position
    where spelled.field not in ('tag', 'source')
    group by spelled.number, spelled.lexeme, spelled.position
    union all
    -- Of one name each lexeme is a form (OAuth2 is oauth2 and oauth); those of a path follow each other.
    select term.number, 'whole' || case when term.text ~ '^\w+$' then ' ' || position else '' end, found.lexeme, position, null
    from term
    cross join lateral unnest(folklore_compounds(term.text)) as found
    cross join lateral unnest(found.positions) as position
    where term.text !~ '\s'
    union all
    select term.number, 'whole in ' || spoken.language, found.lexeme, position, null
    from term
    cross join unnest(case when term.field in ('tag', 'source') then '{pg_catalog.simple}' else :languages::text[] end)
        as spoken (language)
    cross join lateral unnest(folklore_joined(spoken.language, term.text, every => true)) as found
    cross join lateral unnest(found.positions) as position
    where term.text !~ '\s'
)
select form.number, form.reading, array_agg(form.lexeme order by form.position) as lexemes,
    array_agg(form.position order by form.position) as positions,
    case when form.reading = 'spelled' then array_agg(form.stem order by form.position) end as stems
from form
group by form.number, form.reading
order by 1, 2

-- name: lexemes. The lexemes of a question in scope, one row. Its :tokens between white space are analysed in :languages:
-- each lexeme with its kind, token, position, and language if it is of one. Of these, and of :lexemes, the postings:
-- the kept number of documents among packed memories and, of the rarest until :budget postings are spent, the
-- entries, with the namespaces that have any, and how many; the same of these in cues, which have a budget of
-- their own. Then all lexemes of fresh memories, and the number and the summed length of the packed ones. One statement is
-- one moment: a memory is packed or fresh. Most tokens are plain words: functions that look for names are called for the
-- others alone.
with
-- include excluded_namespaces
token as materialized (
    select given.text, given.number::integer from unnest(:tokens::text[]) with ordinality as given (text, number)
),
analysed as materialized (
    select 'word' as kind, token.number, position::integer, spoken.language, found.lexeme
    from token
    cross join unnest(:languages::text[]) as spoken (language)
    cross join lateral unnest(folklore_words(spoken.language, token.text, spelled => false)) as found
    cross join lateral unnest(found.positions) as position
    where (char_length(found.lexeme) > 1 or ascii(found.lexeme) < 3584)  -- single characters of scripts without spaces
        -- The number of a name is a word for phrases alone: python3 does not ask for every 3.
        and not (found.lexeme ~ '^[0-9]+$' and token.text ~ '(?![0-9_])\w' and token.text ~ (
            '((?![0-9_])\w){2}' || found.lexeme || '(\D|$)|(^|\D)' || found.lexeme || '((?![0-9_])\w){3}'))
    union all
    select 'spelled', token.number, position::integer, '', found.lexeme
    from token
    cross join lateral unnest(folklore_words('pg_catalog.simple', token.text, spelled => false)) as found
    cross join lateral unnest(found.positions) as position
    union all
    select 'compound', token.number, 0, '', found.lexeme
    from token
    cross join lateral unnest(folklore_compounds(token.text)) as found
    where token.text !~ '^[^\d_]?[a-z]*\W*$'
    union all
    select 'joined', token.number, 0, spoken.language, found.lexeme
    from token
    cross join unnest(:languages::text[]) as spoken (language)
    cross join lateral unnest(folklore_joined(spoken.language, token.text, every => true)) as found
    where token.text ~ '[-/\u2010\u2011]'
),
hashed as materialized (
    select folklore_word(lexeme) as word
    from (select lexeme from analysed union select unnest(:lexemes::text[])) every
),
sought as materialized (
    select word from hashed
    union all
    select word + 1 from hashed  -- the same in cues
),
counted as materialized (
    select p.word, sum(p.documents) as documents
    from postings p
    where p.word = any(array(select word from sought)) and p.namespace_id = any(:namespaces::uuid[]) and p.block = 0
    group by p.word
),
rarest as materialized (
    select spent.word
    from (
        select counted.*, sum(documents) over (partition by word & 1 order by documents, word) as postings from counted
    ) spent
    where spent.postings <= :budget::integer or spent.postings = spent.documents
),
listed as materialized (
    select o.namespace_id, o.word, case when (8 - 4 * (o.word & 1)) * o.documents <= octet_length(o.entries) then o.entries else (
            select string_agg(p.entries, '')
            from postings p
            where p.namespace_id = o.namespace_id and p.word = o.word
        ) end as entries
    from postings o
    where o.word = any(array(select word from rarest)) and o.namespace_id = any(:namespaces::uuid[]) and o.block = 0
)
select a.*, c.*, p.*, f.*, n.*
from (
    select array_agg(kind) as kinds, array_agg(number) as token_numbers, array_agg(position) as positions,
        array_agg(language) as languages, array_agg(lexeme) as lexemes
    from analysed
) a
cross join (select array_agg(word) as hashes, array_agg(documents) as documents from counted) c
cross join (
    select array_agg(word) as rare, array_agg(spaces) as spaces, array_agg(counts) as counts, array_agg(entries) as entries
    from (
        select word, string_agg(uuid_send(namespace_id), '') as spaces,
            string_agg(int4send(octet_length(entries) / (8 - 4 * (word & 1))), '') as counts, string_agg(entries, '') as entries
        from listed
        group by word
    ) of_word
) p
cross join (
    select string_agg(uuid_send(namespace_id), '') as fresh_spaces, string_agg(uuid_send(memory_id), '') as fresh_ids,
        string_agg(int2send(length), '') as fresh_lengths, string_agg(int4send(octet_length(words) / 4), '') as fresh_counts,
        string_agg(words, '') as fresh_hashes, string_agg(frequencies, '') as fresh_frequencies
    from fresh_words where namespace_id = any(:namespaces::uuid[])
) f
cross join (
    select coalesce(sum(n.documents), 0) as total, coalesce(sum(n.length), 0) as length
    from packed_namespaces n
    where n.namespace_id = any(:namespaces::uuid[])
) n
