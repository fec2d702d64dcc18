-- Names with digits, hyphens and slashes are found by their parts and joined, and symbols as they are written.

create or replace function folklore_words(language text, body text, spelled boolean default true) returns tsvector
language plpgsql immutable parallel safe as $$
declare
    no_spaces constant text := '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3400-\u9fff'
        '\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]';
    symbols constant text := '\u00a2-\u00a9\u00ac\u00ae-\u00b1\u00b6\u00d7\u00f7\u20a0-\u20cf\u2100-\u214f'
        '\u2190-\u243f\u25a0-\u27e5\u27f0-\u2982\u2999-\u2bff\u3030\u303d\U0001d100-\U0001d1ff\U0001f000-\U0001faff';
    tones constant text := '[\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff]*';
    ascii constant boolean := octet_length(body) = char_length(body);
    texts text[];
    words tsvector;
begin
    if not ascii then  -- also without soft hyphens and the vowel points of Hebrew and Arabic
        body := translate(regexp_replace(normalize(body, NFKC),
            '[\u00ad\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]', '', 'g'),
            'ёЁ', 'еЕ');
        if body ~ ('[' || symbols || ']') then  -- 👩‍💻 → u128105u128187 u128105 u128187
            body := (
                select string_agg(case when run.text ~ ('^[^' || symbols || ']') then run.text else (
                        select ' ' || string_agg('u' || ascii(sign), '') || ' ' || case
                            when count(*) > 1 and run.text !~ '^[\U0001f1e6-\U0001f1ff]' then string_agg(
                                'u' || ascii(sign) || ' ', '') filter (where sign !~ '[\U0001f3fb-\U0001f3ff]')
                            else '' end
                        from regexp_split_to_table(regexp_replace(run.text, '[\u200d\ufe0e\ufe0f\u20e3]', '', 'g'), '') as sign
                    ) end, '' order by place)
                from regexp_matches(body, '[\U0001f1e6-\U0001f1ff]{2}|[' || symbols || ']' || tones
                    || '(?:\u200d[' || symbols || ']' || tones || ')*|[^' || symbols || ']+', 'g')
                    with ordinality as matched (texts, place)
                cross join lateral (select matched.texts[1]) as run (text)
            );
        end if;
    end if;
    if body ~ '[+][+]|#' then
        body := regexp_replace(regexp_replace(body,
            '(^|[^A-Za-z0-9_])([a-z])\+\+', '\1\2plusplus ', 'gi'),
            '(^|[^A-Za-z0-9_])([cfjq])#', '\1\2sharp ', 'gi');
    end if;
    -- Vowel signs of India and South-East Asia are no letters for every collation, and belong to the word.
    body := regexp_replace(regexp_replace(regexp_replace(body,
        '([[:lower:][:digit:]])([[:upper:]])', '\1 \2', 'g'),
        '([[:upper:]])([[:upper:]][[:lower:]])', '\1 \2', 'g'),
        '[^[:alnum:][:space:]\u0900-\u0963\u0966-\u0eff\u1000-\u109f\u1780-\u17d3]+', ' ', 'g');
    if not ascii and body ~ no_spaces then  -- 東京都 → 東東京京都都 → 東京京都都 → 東京 京都 都
        body := regexp_replace(regexp_replace(regexp_replace(body,
            '(' || no_spaces || ')', '\1\1', 'g'),
            '(^|[^' || substr(no_spaces, 2) || ')' || no_spaces, '\1 ', 'g'),
            '(' || no_spaces || '{1,2})', '\1 ', 'g');
    end if;
    if body ~ '[[:alpha:]]{2}[[:digit:]]|[[:digit:]][[:alpha:]]{3}' then  -- Postgres17 → Postgres 17
        body := regexp_replace(regexp_replace(body,
            '\m([[:alpha:]]{2,})([[:digit:]]{1,5})(?:([[:alpha:]]{2,})([[:digit:]]{0,5}))?\M', '\1 \2 \3 \4', 'g'),
            '\m([[:digit:]]{1,5})([[:alpha:]]{3,})\M', '\1 \2', 'g');
    end if;
    if ascii or octet_length(body) = char_length(body) then
        words := to_tsvector(language::regconfig, body);
    else
        texts := array[body, to_tsvector(language::regconfig, body)::text];
        for place in 1..2 loop
            texts[place] := replace(replace(replace(translate(normalize(regexp_replace(normalize(texts[place], NFD),
                '([A-Za-z\u0370-\u03ff])[\u0300-\u036f]+', '\1', 'g'), NFC),
                'øØłŁđĐðÐıħŧ', 'oOlLdDdDiht'), 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe');
        end loop;
        if texts[1] <> body then
            texts[2] := texts[2] || ' ' || to_tsvector(language::regconfig, texts[1])::text;
        end if;
        body := texts[1];
        words := texts[2]::tsvector;
        if spelled then
            words := regexp_replace(texts[2], '''' || no_spaces || ''':[0-9,]+', '', 'g')::tsvector;
        end if;
    end if;
    if not spelled then
        return words;
    end if;
    return (words::text || replace(' ' || ts_delete(to_tsvector('pg_catalog.simple'::regconfig, body),
        tsvector_to_array(words))::text, ' ''', ' ''='))::tsvector;
end
$$;

create or replace function folklore_compounds(body text) returns tsvector
language plpgsql immutable parallel safe as $$
declare
    no_spaces constant text := '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3400-\u9fff'
        '\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]';
    plain constant text := '(?:\m(?:[[:upper:]]?[^[:upper:][:space:][:punct:]]*|[[:upper:][:digit:]]+)\M[^[:alnum:]_]*)+';
    digits constant boolean := body ~ '[[:alpha:]]{2}[[:digit:]]|[[:digit:]][[:alpha:]]{3}';
begin
    if not digits
        and body !~ '_|[[:lower:]][[:digit:]]*[[:upper:]]|[[:alnum:]][[:upper:]][[:upper:][:digit:]]*[[:lower:]]' then
        return '';
    end if;
    if octet_length(body) <> char_length(body) then
        body := regexp_replace(normalize(body, NFKC), no_spaces || '+', ' ', 'g');
    end if;
    if digits then  -- Postgres17 → Postgres_17
        body := regexp_replace(regexp_replace(body,
            '\m([[:alpha:]]{2,})([[:digit:]]{1,5})(?:([[:alpha:]]{2,})([[:digit:]]{0,5}))?\M', '\1_\2\3\4', 'g'),
            '\m([[:digit:]]{1,5})([[:alpha:]]{3,})\M', '\1_\2', 'g');
    end if;
    body := regexp_replace(body, plain, ' ', 'g');
    if digits and body ~ '\m[[:alpha:]]+_[[:digit:]]' then  -- OAuth_2 → OAuth
        body := body || ' ' || coalesce((
            select string_agg(regexp_replace(name[1], plain, ' ', 'g'), ' ')
            from regexp_matches(body, '\m([[:alpha:]]+)_[[:digit:]]', 'g') as name), '');
    end if;
    return to_tsvector('pg_catalog.simple'::regconfig,
        regexp_replace(replace(lower(body), '_', ''), '[^[:alnum:]]+', ' ', 'g'));
end
$$;

create function folklore_joined(language text, body text, every boolean default false) returns tsvector
language plpgsql immutable parallel safe as $$
declare
    no_spaces constant text := '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3400-\u9fff'
        '\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]';
    pair constant text := case when every then '[[:alpha:]]+[-/](?:[[:alpha:]]+|[[:digit:]]+)' else
        '[[:alpha:]]{1,3}-[[:alpha:]]{2,}|[[:alpha:]]{4}-[[:alpha:]]{2,5}|[[:alpha:]]{5}-[[:alpha:]]{2,4}'
        '|[[:alpha:]]{6}-[[:alpha:]]{2,3}|[[:alpha:]]{7}-[[:alpha:]]{2}|[[:upper:]][[:alpha:]]*-[[:digit:]]{1,5}'
        '|[[:alpha:]]{1,3}/[[:alpha:]]{1,2}|[[:alpha:]]{1,2}/[[:alpha:]]{3}|[[:alpha:]]/[[:alpha:]]{4}' end;
    names text;
begin
    if body !~ '[[:alpha:]][-/\u2010\u2011][[:alnum:]]' then
        return '';
    end if;
    if octet_length(body) <> char_length(body) then
        body := replace(replace(replace(translate(normalize(regexp_replace(normalize(
            regexp_replace(normalize(body, NFKC), no_spaces || '+', ' ', 'g'), NFD),
            '([A-Za-z\u0370-\u03ff])[\u0300-\u036f]+', '\1', 'g'), NFC),
            '‐øØłŁđĐðÐıħŧ', '-oOlLdDdDiht'), 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe');
    end if;
    names := (
        select string_agg(translate(name[1], '-/', ''), ' ')
        from regexp_matches(body, '[^\s,;()\[\]"`''<>*]+[-/][^\s,;()\[\]"`''<>*]+', 'g') as name
        where name[1] ~ ('^[^[:alnum:]/-]*(?:' || pair || ')(?:[.:!?][^[:alnum:]]*)?$')
    );
    return case when names is null then '' else to_tsvector(language::regconfig, names) end;
end
$$;

create or replace function folklore_lexemes(language text, body text) returns tsvector
language sql immutable parallel safe
return folklore_words(language, body) || folklore_compounds(body) || folklore_joined(language, body);

create or replace function folklore_cues(language text, cues text[]) returns tsvector
language sql immutable parallel safe
begin atomic
    with analysed as materialized (
        select folklore_words(folklore_cues.language, body, spelled => false) as words,
            folklore_words('pg_catalog.simple', body, spelled => false) as spelled,
            folklore_compounds(body) || folklore_joined(folklore_cues.language, body) as compounds
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

-- What the search reads is made anew for the memories that it differs for, and all their words are packed again.
update memories set content = content
where search is distinct from folklore_search(language, content, summary, tags, source);
truncate fresh_words, postings, packed_memories, packed_namespaces;
-- A namespace at a time: a cluster sends this whole to the node of one.
do $$
declare
    space uuid;
begin
    for space in select id from namespaces loop
        insert into fresh_words (namespace_id, memory_id, length, words, frequencies)
        select m.namespace_id, m.id, folklore_length(m.search), named.words, named.frequencies
        from memories m
        cross join lateral (
            select string_agg(int4send(word), '') as words, string_agg(int2send(frequency), '') as frequencies
            from (
                select word, frequency from folklore_named_words(m.search, coalesce(m.occurred_at, m.created_at))
                union all
                select folklore_word(cue.lexeme), 1::smallint
                from unnest(folklore_cues(m.language, m.cues)) as cue
                where m.cues <> '{}'
            ) held
        ) named
        where m.namespace_id = space;
    end loop;
end
$$;
