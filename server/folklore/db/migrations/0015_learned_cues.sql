-- Cues that were learned from questions, beside those that somebody stated.

alter table memories add column learned_cues text[] not null default '{}';
-- A cluster sets no statistics of a distributed table.
do $$
begin
    if to_regclass('pg_dist_partition') is null then
        alter table memories alter column learned_cues set statistics 0;
    end if;
end
$$;
