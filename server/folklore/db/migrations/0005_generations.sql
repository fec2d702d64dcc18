-- Which generation of vectors counts. One model is `active`: questions are embedded by it and new memories too. `next`
-- is being filled beside it, `previous` was active before and can be again until its vectors are dropped. Moving the
-- role is the whole switch: a row or two, in one transaction.
-- A model is written down as it is reached, never with a key, so that every server can follow.
alter table models
    add column role text,
    add column since timestamptz,
    add column url text,
    -- The size that is asked for in each request; null for the model's own.
    add column asked_dimensions integer,
    add column query_prefix text not null default '',
    add column document_prefix text not null default '',
    add column revision text not null default '',
    -- What the model made of a fixed text when it was first used: another model behind the same name is noticed.
    add column probe real[],
    add constraint models_role_check check (role in ('active', 'next', 'previous'));
create unique index models_role_key on models (role);

update models set role = 'active', since = created_at
where id = (select id from models order by created_at desc, id limit 1);
