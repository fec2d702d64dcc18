-- Cues: phrases that say when a memory is needed, with words and a vector of their own.

alter table memories add column cues text[] not null default '{}';
-- A cluster sets no statistics of a distributed table.
do $$
begin
    if to_regclass('pg_dist_partition') is null then
        alter table memories alter column cues set statistics 0;
    end if;
end
$$;
alter table embeddings add column cues halfvec;

create function folklore_cues(language text, cues text[]) returns tsvector
language sql immutable parallel safe
begin atomic
    with analysed as materialized (
        select folklore_words(folklore_cues.language, body, spelled => false) as words,
            folklore_words('pg_catalog.simple', body, spelled => false) as spelled, folklore_compounds(body) as compounds
        from (select array_to_string(folklore_cues.cues, ' . ') as body) joined
    )
    select coalesce(array_to_tsvector(array_agg(distinct '~' || found.lexeme)), '')
    from (
        select word.lexeme from analysed, unnest(analysed.words) as word
        union all
        select compound.lexeme from analysed, unnest(analysed.compounds) as compound
        union all
        select word.lexeme from analysed, unnest(analysed.spelled) as word
        where word.positions && array(select unnest(stem.positions) from unnest(analysed.words) as stem)
    ) found;
end;
