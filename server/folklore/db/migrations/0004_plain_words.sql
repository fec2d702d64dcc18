-- Words of fresh memories as bytes, which a question reads as they are.

create function folklore_bytes(words integer[]) returns bytea
language sql immutable
return (select string_agg(int4send(word), '' order by place) from unnest(words) with ordinality as held (word, place));

alter table fresh_words alter column words type bytea using folklore_bytes(words);
alter table fresh_words alter column words set storage external;
drop function folklore_bytes(integer[]);
