-- A transaction of a token begins without the key in the text of a statement.

create or replace function folklore_enter(key text) returns void
language plpgsql as $$
begin
    set local role folklore_app;
    perform set_config('folklore.key', key, true);
end
$$;
